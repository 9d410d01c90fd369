"""Calls with one answer over HTTP/1.1, by Connect's protocol, for those that are made with every step.

gRPC for Python takes most of a millisecond of CPU for such a call, a connection that is kept a fraction of that; see
docs/adr/0030. What is called so must be safe to repeat.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from .certificates import Security
from .channel import authorization, split_url
from .errors import Cancelled, DeadlineExceeded, PolarError, from_connect_error
from .http_connection import BROKEN, code_of, connected, failure
from .limits import CONNECT_S

M = TypeVar("M", bound=Message)

_MEDIA_TYPE = "application/proto"


class _Kept(NamedTuple):
    """A connection between two calls."""

    connection: http.client.HTTPConnection
    #: What it was made with: certificates are renewed.
    tls: ssl.SSLContext | None
    #: One that was forked has the same connection.
    process: int


class HttpCalls:
    """Calls to one address. Thread-safe: one connection is kept, and threads that call at once have their own."""

    def __init__(self, url: str, security: Callable[[], Security], token: str | None) -> None:
        self._url = split_url(url)
        self._security = security
        authorized = dict(authorization(token))
        self._headers = {"content-type": _MEDIA_TYPE, "connect-protocol-version": "1", **authorized}
        #: At most one. Taking and giving back are single steps, which no other thread gets between.
        self._kept: list[_Kept] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._closed = False

    def method(self, path: str, answer: type[M]) -> Callable[..., M]:
        """That at ``/<package>.<Service>/<Method>``, called as a stub of gRPC is: ``call(request, timeout=seconds)``.

        Raises PolarError.
        """

        def call(request: Message, timeout: float) -> M:
            data = self._call(path, request.SerializeToString(), time.monotonic() + timeout)
            try:
                return answer.FromString(data)
            except DecodeError as error:
                raise failure(error) from error

        return call

    def close(self) -> None:
        """End all connections; calls in flight raise Cancelled."""
        self._closed = True
        self._drop_kept()
        for connection in list(self._busy):
            try:
                # Unlike close() this wakes a thread that waits for its answer.
                connection.sock.shutdown(socket.SHUT_RDWR)
            except (OSError, AttributeError):
                pass

    def _call(self, path: str, body: bytes, end: float) -> bytes:
        while True:
            kept = self._take()
            try:
                return self._answer(kept, path, body, end)
            except BROKEN as error:
                if self._closed:
                    raise Cancelled("the client is closed", code="CANCELLED") from error
                if time.monotonic() >= end:
                    raise DeadlineExceeded("no answer came in time", code="DEADLINE_EXCEEDED") from error
                # A server ends connections that nobody uses, also where somebody begins to: a new one says more.
                if kept is None:
                    raise failure(error, self._url.netloc) from error

    def _answer(self, kept: _Kept | None, path: str, body: bytes, end: float) -> bytes:
        left_s = max(end - time.monotonic(), 0.001)
        used = kept or self._open(left_s)
        connection = used.connection
        self._busy.add(connection)
        try:
            if self._closed:
                # Meanwhile, and who closed did not see this one.
                raise ConnectionAbortedError("closed")
            connection.sock.settimeout(left_s)
            headers = {**self._headers, "connect-timeout-ms": str(round(left_s * 1000) or 1)}
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except BaseException:
            # Also of a signal's handler: what comes would be taken for the answer of the next call.
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
        self._keep(used)
        if answer.status != http.HTTPStatus.OK or answer.headers.get_content_type() != _MEDIA_TYPE:
            raise _refusal(answer, data)
        return data

    def _open(self, left_s: float) -> _Kept:
        if self._closed:
            raise ConnectionAbortedError("closed")
        tls = self._security().tls
        connection = connected(self._url, tls, min(CONNECT_S, left_s))
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            # A link that went away without a word: what is sent over the kept connection fails, and a new one is tried.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(CONNECT_S * 1000))
        return _Kept(connection, tls, os.getpid())

    def _take(self) -> _Kept | None:
        """The kept one, where this process may use it and it is made with the certificates that hold now."""
        try:
            kept = self._kept.pop()
        except IndexError:
            return None
        if kept.process == os.getpid() and kept.tls is self._security().tls:
            return kept
        kept.connection.close()
        return None

    def _keep(self, used: _Kept) -> None:
        # One whose server says that it ends is closed by now.
        if used.connection.sock is None:
            return
        self._drop_kept()
        self._kept.append(used)
        if self._closed:
            self._drop_kept()

    def _drop_kept(self) -> None:
        while self._kept:
            try:
                self._kept.pop().connection.close()
            except IndexError:
                return


def _refusal(answer: http.client.HTTPResponse, data: bytes) -> PolarError:
    """The mesh's own word, or that of another server on the way."""
    kind = answer.headers.get_content_type()
    if kind == "application/json":
        try:
            return from_connect_error(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError):
            pass
    told = f"HTTP {answer.status} {answer.reason}, {kind}"
    return from_connect_error({"code": code_of(answer.status), "message": told})
