"""The trajectory stream over HTTP/1.1, by Connect's protocol: messages behind their lengths, in the body of one answer.

gRPC for Python moves every byte of a large message several times. Over a plain connection the kernel writes it into memory
that is the message's own; see docs/adr/0030.
"""

from __future__ import annotations

import http.client
import json
import math
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal
from urllib.parse import SplitResult

import numpy as np
from google.protobuf.message import DecodeError

from .certificates import Security
from .channel import authorization, split_url
from .errors import Internal, PolarError, from_connect_error
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesRequest
from .http_body import HttpBody, Unbuffered
from .http_connection import code_of, connected, failure
from .reader import Ended
from .wire import STREAM_PATH, StreamMessage

#: How the stream comes: over HTTP/1.1, or over the gRPC channel of the other calls.
Transport = Literal["http", "grpc"]

#: A message's flags and its length.
_PREFIX = struct.Struct(">BI")
_COMPRESSED, _LAST = 1, 2
#: What a socket that does not wait raises where nothing has come.
_NOTHING_YET = (BlockingIOError, ssl.SSLWantReadError)
_MEDIA_TYPE = "application/connect+proto"


def http_stream_method(
    url: str,
    transport: Transport,
    security: Callable[[], Security],
    token: str | None,
) -> Callable[[StreamTrajectoriesRequest], HttpCall] | None:
    """``TrajectoryService.StreamTrajectories`` at ``http://host:port`` or ``https://host:port``.

    None where it is to go by gRPC: so it is asked for, or there are certificates in a form that only gRPC can read.
    Raises ValueError for another URL or transport.
    """
    if transport not in ("http", "grpc"):
        raise ValueError(f"{transport!r} is not http or grpc")
    known = security()
    if transport == "grpc" or (known.credentials is not None and known.tls is None):
        return None
    parts = split_url(url)
    headers = dict(authorization(token))
    return lambda request: HttpCall(parts, security().tls, headers, request)


class HttpCall(Iterator[StreamMessage]):
    """One call on a connection of its own. One thread opens and reads it; any may cancel.

    Raises PolarError for what the server or the connection ends with.
    """

    def __init__(
        self,
        url: SplitResult,
        tls: ssl.SSLContext | None,
        headers: Mapping[str, str],
        request: StreamTrajectoriesRequest,
    ) -> None:
        self._url = url
        self._tls = tls
        self._headers = headers
        self._request = request.SerializeToString()
        self._socket: socket.socket | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._body: HttpBody | None = None
        self._cancelled = False
        #: When something came last, or the call was made, as ``time.monotonic`` has it.
        self.heard = time.monotonic()
        #: The flags of the message that comes; None: they are still to come, with its length.
        self._flags: int | None = None
        self._memory = memoryview(bytearray(_PREFIX.size))
        self._filled = 0

    def open(self) -> None:
        """Connect, ask, and read the answer's head. Done by the first ``next`` where nobody has."""
        with self._ending():
            try:
                self._ask()
            except PolarError:
                raise
            except Exception as error:
                raise failure(error, self._url.netloc) from error

    def poll(self, until: float) -> StreamMessage | None:
        """The next message; None where it has not come whole until then. Raises Ended where the server ended the stream.

        What a signal's handler raises meanwhile is raised as it is, and ends the call, too.
        """
        with self._ending():
            try:
                return self._message(until)
            except (PolarError, Ended):
                raise
            except Exception as error:
                # One that another thread closes says anything.
                if self._cancelled or _is_connections(error):
                    raise failure(error, self._url.netloc) from error
                raise

    @property
    def arriving(self) -> bool:
        """Whether a message has come in part."""
        return self._flags is not None or self._filled > 0

    def __next__(self) -> StreamMessage:
        if self._body is None:
            self.open()
        try:
            message = self.poll(math.inf)
        except Ended:
            raise StopIteration from None
        assert message is not None
        return message

    def cancel(self) -> None:
        """End the call; who waits for a message of it is told."""
        self._cancelled = True
        if self._socket is None:
            return
        try:
            # Unlike close() this wakes a thread that reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
        if self._answer is not None:
            self._answer.close()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Whatever is raised ends the call: how much had come by then is not known."""
        try:
            if self._cancelled:
                # What has come already is not given out any more.
                raise failure(ConnectionAbortedError("the call was cancelled"))
            yield
        except BaseException:
            self.cancel()
            raise

    def _message(self, until: float) -> StreamMessage | None:
        if self._flags is None:
            if not self._fill(until):
                return None
            self._flags, size = _PREFIX.unpack(self._memory)
            # Not zeroed: all of it is filled.
            self._memory, self._filled = memoryview(np.empty(size, np.uint8)), 0  # type: ignore[arg-type]
        if not self._fill(until):
            return None
        flags, data = self._flags, self._memory
        self._flags, self._memory, self._filled = None, memoryview(bytearray(_PREFIX.size)), 0
        if flags & _COMPRESSED:
            raise Internal("a message is compressed, which nobody asked for", code="INTERNAL")
        if flags & _LAST:
            raise _end(data)
        return StreamMessage(data)

    def _fill(self, until: float) -> bool:
        """Whether the memory was filled in time."""
        assert self._body is not None
        while self._filled < len(self._memory):
            try:
                self._filled += self._body.read_into(self._memory[self._filled :])
                self.heard = time.monotonic()
            except _NOTHING_YET:
                if not self._wait(until):
                    return False
        return True

    def _wait(self, until: float) -> bool:
        """Wait for what comes; whether it came in time."""
        assert self._socket is not None
        left_s = until - time.monotonic()
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return bool(poller.poll(None if left_s == math.inf else max(left_s, 0) * 1000))

    def _ask(self) -> None:
        connection = connected(self._url, self._tls)
        self._socket = connection.sock
        # Nothing is waited for with a limit: who reads ends a call that is silent.
        self._socket.settimeout(None)
        if self._cancelled:
            self.cancel()
        headers = {"content-type": _MEDIA_TYPE, "connect-protocol-version": "1", **self._headers}
        body = _PREFIX.pack(0, len(self._request)) + self._request
        connection.response_class = Unbuffered
        connection.request("POST", STREAM_PATH, body, headers)
        # It keeps the connection open, which its head may call closed.
        self._answer = answer = connection.getresponse()
        kind = answer.headers.get_content_type()
        if answer.status != http.HTTPStatus.OK or kind != _MEDIA_TYPE:
            told = f"HTTP {answer.status} {answer.reason}, {kind}"
            raise from_connect_error({"code": code_of(answer.status), "message": told})
        self.heard = time.monotonic()
        self._socket.setblocking(False)
        self._body = HttpBody(self._socket, chunked=bool(answer.chunked))


def _end(data: memoryview) -> PolarError | Ended:
    """How the server ended the stream, by its last message."""
    try:
        error = json.loads(bytes(data)).get("error")
        return Ended() if error is None else from_connect_error(error)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return failure(error)


def _is_connections(error: Exception) -> bool:
    """Whether the connection, or what came by it, is at fault. An error of the socket has a number: what a signal's
    handler raises, a TimeoutError say, has none."""
    if isinstance(error, OSError):
        return error.errno is not None
    return isinstance(error, (http.client.HTTPException, DecodeError))
