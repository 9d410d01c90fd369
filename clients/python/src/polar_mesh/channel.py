"""Connections to the mesh."""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import grpc
import grpc.aio

if TYPE_CHECKING:
    from .certificates import Security

# A batch is as large as its group; the server bounds it. Reconnecting is quick, as the client paces its own tries.
# A link that went away without a word is found by pings within 30 s. The mesh is reached directly, as it is by the stream
# over HTTP: an http_proxy of the environment is for the web.
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]


#: What an access token may hold: visible characters of ASCII.
_TOKEN = re.compile(r"[!-~]*")


def authorization(token: str | None) -> list[tuple[str, str]]:
    """Metadata of calls with an access token; default: that of ``$POLAR_TOKEN``, if it is set.

    White space around it, as of a file's last line, is left out. Raises ValueError for one that no header can carry,
    without naming it.
    """
    known = (token or os.environ.get("POLAR_TOKEN") or "").strip()
    if not _TOKEN.fullmatch(known):
        raise ValueError("the access token holds white space, or characters that are not ASCII")
    return [("authorization", f"Bearer {known}")] if known else []


class _Authorized(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
):
    """Adds the token to every call; the API has no others than these two kinds."""

    def __init__(self, metadata: list[tuple[str, str]]) -> None:
        self._metadata = metadata

    def intercept_unary_unary(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return continuation(self._with_token(client_call_details), request)

    def intercept_unary_stream(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return continuation(self._with_token(client_call_details), request)

    def _with_token(self, details: grpc.ClientCallDetails) -> grpc.ClientCallDetails:
        return _CallDetails(
            method=details.method,
            timeout=details.timeout,
            metadata=[*(details.metadata or ()), *self._metadata],
            credentials=details.credentials,
            wait_for_ready=details.wait_for_ready,
            compression=details.compression,
        )


class _CallDetails(NamedTuple):
    method: str
    timeout: float | None
    metadata: list[tuple[str, str]] | None
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: grpc.Compression | None


def open_channel(url: str, security: Callable[[], Security], token: str | None = None) -> grpc.Channel:
    """A channel to ``http://host:port`` or ``https://host:port``. Raises ValueError for another URL."""
    metadata = authorization(token)
    target, is_tls = _target(url)
    if not is_tls:
        return _authorized(grpc.insecure_channel(target, options=_CHANNEL_OPTIONS), metadata)

    def opened(tls: grpc.ChannelCredentials) -> grpc.Channel:
        return _authorized(grpc.secure_channel(target, tls, options=_CHANNEL_OPTIONS), metadata)

    return _Renewed(security, opened)


def _authorized(channel: grpc.Channel, metadata: list[tuple[str, str]]) -> grpc.Channel:
    return grpc.intercept_channel(channel, _Authorized(metadata)) if metadata else channel


def open_aio_channel(
    url: str, security: Callable[[], Security], token: str | None = None
) -> grpc.aio.Channel:
    """The same for asyncio; in a coroutine, as it belongs to the running loop."""
    metadata = authorization(token)
    target, is_tls = _target(url)
    how = {
        "options": _CHANNEL_OPTIONS,
        "interceptors": [_AioUnary(metadata), _AioStream(metadata)] if metadata else [],
    }
    if not is_tls:
        return grpc.aio.insecure_channel(target, **how)
    return _AioRenewed(security, lambda tls: grpc.aio.secure_channel(target, tls, **how))


class _Renewed:
    """A channel whose certificates are renewed: each call goes by one that was made with those that hold now, and what is
    under way goes on where it is. A channel that is dropped ends with its last call."""

    def __init__(
        self, security: Callable[[], Security], opened: Callable[[grpc.ChannelCredentials], grpc.Channel]
    ) -> None:
        self._security = security
        self._opened = opened
        self._lock = threading.Lock()
        self._known = security()
        #: The present one behind the last one, whose calls end with this one, too.
        self._channels = deque([self._open()], maxlen=2)

    def unary_unary(self, *method: Any, **how: Any) -> Callable[..., Any]:
        return lambda *args, **options: self._present().unary_unary(*method, **how)(*args, **options)

    def unary_stream(self, *method: Any, **how: Any) -> Callable[..., Any]:
        return lambda *args, **options: self._present().unary_stream(*method, **how)(*args, **options)

    def close(self) -> None:
        for channel in tuple(self._channels):
            channel.close()

    def _present(self) -> grpc.Channel:
        with self._lock:
            known = self._security()
            if known is not self._known:
                self._known = known
                self._channels.append(self._open())
            return self._channels[-1]

    def _open(self) -> grpc.Channel:
        return self._opened(self._known.credentials or grpc.ssl_channel_credentials())


class _AioRenewed(_Renewed):
    async def close(self) -> None:  # type: ignore[override]
        for channel in tuple(self._channels):
            await channel.close()


class _AioAuthorized:
    """Adds the token to every call."""

    def __init__(self, metadata: list[tuple[str, str]]) -> None:
        self._metadata = metadata

    def _with_token(self, details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *self._metadata)
        return details._replace(metadata=metadata)


class _AioUnary(_AioAuthorized, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return await continuation(self._with_token(client_call_details), request)


class _AioStream(_AioAuthorized, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return await continuation(self._with_token(client_call_details), request)


def _target(url: str) -> tuple[str, bool]:
    """Where to connect, and whether by TLS. Raises ValueError."""
    parts = split_url(url)
    is_tls = parts.scheme == "https"
    return parts.netloc if parts.port else f"{parts.netloc}:{443 if is_tls else 80}", is_tls


def split_url(url: str) -> SplitResult:
    """Of ``http://host:port`` or ``https://host:port``. Raises ValueError for another one."""
    parts = urlsplit(url)
    if parts.username is not None:
        # Not repeated: there may be a password in it.
        raise ValueError("http://user@host:port names a user: the mesh knows access tokens only, token= or $POLAR_TOKEN")
    if parts.scheme not in ("http", "https") or not _is_place(parts) or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is not http://host:port or https://host:port")
    return parts


def _is_place(parts: SplitResult) -> bool:
    """Whether it has a host, and a port that there can be or none."""
    try:
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
