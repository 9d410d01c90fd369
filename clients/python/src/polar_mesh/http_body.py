"""The body of an answer over HTTP/1.1, read as far as it has come: after a wait that was too long it is read on.

The standard library's reader of bodies cannot be asked again then.
"""

from __future__ import annotations

import http.client
import re
import socket
from typing import Any

#: Of a line before a chunk, with what it may say beside the chunk's size.
_LINE_BYTES_MAX = 4096
#: Taken from the socket where such a line comes next, with what follows it.
_AHEAD_BYTES = 4096
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(;.*)?")


class Unbuffered(http.client.HTTPResponse):
    """Takes no more from the socket than its own head: what follows is read from the socket itself."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = sock.makefile("rb", buffering=0)  # type: ignore[assignment]


class HttpBody:
    """What follows a head on a socket that does not wait: it raises where nothing has come, and nothing is lost by that."""

    def __init__(self, sock: socket.socket, *, chunked: bool) -> None:
        self._socket = sock
        #: Of the chunk that is being read; None where there are no chunks.
        self._left = 0 if chunked else None
        #: A chunk was read, and the end of its line was not.
        self._behind_chunk = False
        #: Received, and not yet looked at.
        self._ahead = b""

    def read_into(self, memory: memoryview) -> int:
        """As many bytes as have come, at least one. Raises OSError, and HTTPException where the body ends or is damaged."""
        while self._left == 0:
            self._begin_chunk()
        size = len(memory) if self._left is None else min(len(memory), self._left)
        if self._ahead:
            size = min(size, len(self._ahead))
            memory[:size] = self._ahead[:size]
            self._ahead = self._ahead[size:]
        else:
            size = self._socket.recv_into(memory, size)
            if size == 0:
                raise http.client.IncompleteRead(b"")
        if self._left is not None:
            self._left -= size
        return size

    def _begin_chunk(self) -> None:
        line = self._read_line()
        if self._behind_chunk:
            if line:
                raise http.client.HTTPException("a chunk is longer than it says")
            self._behind_chunk = False
            return
        match = _CHUNK.fullmatch(line)
        if match is None:
            raise http.client.HTTPException(f"{line[:32]!r} is no size of a chunk")
        self._left = int(match[1], 16)
        self._behind_chunk = True
        if self._left == 0:
            raise http.client.IncompleteRead(b"")

    def _read_line(self) -> bytes:
        while (end := self._ahead.find(b"\n")) < 0:
            if len(self._ahead) > _LINE_BYTES_MAX:
                raise http.client.LineTooLong("chunk size")
            more = self._socket.recv(_AHEAD_BYTES)
            if not more:
                raise http.client.IncompleteRead(b"")
            self._ahead += more
        line, self._ahead = self._ahead[:end], self._ahead[end + 1 :]
        return line.rstrip(b"\r")
