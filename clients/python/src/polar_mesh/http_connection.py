"""Plain connections to the mesh, and what is told of those that fail."""

from __future__ import annotations

import http.client
import ssl
from typing import Any
from urllib.parse import SplitResult

from .errors import TLS_FAILED, Internal, PolarError, Unavailable, is_tls_failure
from .limits import CONNECT_S

#: What a connection raises that breaks, or that says what HTTP does not.
BROKEN = (OSError, http.client.HTTPException)
#: What an answer that is not the mesh's own means, as Connect has it, where asking again can help.
_CODES = {
    401: "unauthenticated",
    403: "permission_denied",
    408: "unavailable",
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


def code_of(status: int) -> str:
    """A page, a redirection or a refusal without the mesh's word is another server's, and stays so."""
    return _CODES.get(status, "unknown" if status >= 500 else "unimplemented")


class _OneSend(http.client.HTTPConnection):
    """Sends a request's head and body together: each send is a packet, which wakes the server."""

    _unsent = b""

    def send(self, data: Any) -> None:
        self._unsent += data

    def getresponse(self) -> http.client.HTTPResponse:
        data, self._unsent = self._unsent, b""
        self.sock.sendall(data)
        return super().getresponse()


class _OneSecureSend(_OneSend, http.client.HTTPSConnection):
    pass


def connected(url: SplitResult, tls: ssl.SSLContext | None, timeout_s: float = CONNECT_S) -> http.client.HTTPConnection:
    host = url.hostname or ""
    connection: http.client.HTTPConnection
    if url.scheme == "http":
        connection = _OneSend(host, url.port or 80, timeout=timeout_s)
    else:
        context = tls or ssl.create_default_context()
        connection = _OneSecureSend(host, url.port or 443, timeout=timeout_s, context=context)
    connection.connect()
    return connection


def failure(error: Exception, place: str = "") -> PolarError:
    """The typed form of what a connection, to that place if it is known, or the reading of an answer raised."""
    if isinstance(error, BROKEN):
        message = f"the connection{place and f' to {place}'} broke: {error!r}"
        if is_tls_failure(str(error)):
            return Unavailable(message, code="UNAVAILABLE", reason=TLS_FAILED)
        return Unavailable(message, code="UNAVAILABLE", retryable=True)
    return Internal(f"the answer could not be read: {error!r}", code="INTERNAL")
