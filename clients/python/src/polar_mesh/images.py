"""Images of the conversations that traces are made of: named by each trace, fetched once for each session.

    images = polar_mesh.images.image_bytes(client.export_session(trajectory.session_id, "images"))
    pixels = [images[one.digest] for one in trace.images if one.digest]
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .gen.polar.reconstructor.v1 import trajectory_pb2


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a trace's conversation. The engine was given its bytes (``digest``), or its address (``url``)."""

    #: SHA-256 of its bytes as lower-case hex; empty where the engine was given its address.
    digest: str
    #: Such as image/png; empty where the engine was given its address.
    media_type: str
    #: Its address; empty where its bytes were sent.
    url: str
    #: Digest of the message that holds it, as lines of ``export_session(session_id, "calls")`` name it.
    message_digest: str
    #: Place among the content parts of that message.
    part: int
    #: Bytes; 0 where the engine was given its address.
    size_bytes: int


def read_image(message: trajectory_pb2.TraceImage) -> Image:
    return Image(
        message.digest,
        message.media_type,
        message.url,
        message.message_digest,
        message.part,
        message.size_bytes,
    )


def image_bytes(lines: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """The bytes of a session's images by digest, from the lines of ``Client.export_session(session_id, "images")``."""
    return {line["digest"]: base64.b64decode(line["data"], validate=True) for line in lines}
