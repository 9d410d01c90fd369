"""Connections to the mesh."""

from __future__ import annotations

from urllib.parse import urlsplit

import grpc

# A batch is as large as its group; the server bounds it. Reconnecting is quick, as the client paces its own tries.
# A link that went away without a word is found by pings within 30 s.
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]


def open_channel(url: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """A channel to ``http://host:port`` or ``https://host:port``. Raises ValueError for another URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/"):
        raise ValueError(f"{url!r} is not http://host:port or https://host:port")
    if parts.scheme == "http":
        target = parts.netloc if parts.port else f"{parts.netloc}:80"
        return grpc.insecure_channel(target, options=_CHANNEL_OPTIONS)
    target = parts.netloc if parts.port else f"{parts.netloc}:443"
    tls = credentials or grpc.ssl_channel_credentials()
    return grpc.secure_channel(target, tls, options=_CHANNEL_OPTIONS)
