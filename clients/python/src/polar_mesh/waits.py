"""Why no batch comes: a trainer that has not acknowledged what it holds gets no more."""

from __future__ import annotations

import logging
import time

from .errors import DeadlineExceeded
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesRequest
from .ledger import Books
from .limits import HELD_WARN_S

_log = logging.getLogger("polar_mesh")


class Waits:
    """The waits of one stream for its next batch; each message is waited for ``with`` it."""

    def __init__(self, books: Books, request: StreamTrajectoriesRequest) -> None:
        self._books = books
        self._request = request
        self._warned = False
        self.over()

    def over(self) -> None:
        """A batch has come."""
        self._waited_s = 0.0

    def __enter__(self) -> None:
        """The next message is waited for. Logged once where none brought a batch for long and the trainer is why."""
        self._began = time.monotonic()
        why = self._why()
        if why and not self._warned and self._waited_s > HELD_WARN_S:
            self._warned = True
            _log.warning("consumer %s: no batch for %d s, as %s", self._request.consumer, HELD_WARN_S, why)

    def __exit__(self, *_: object) -> None:
        self._waited_s += time.monotonic() - self._began

    def too_long(self) -> DeadlineExceeded:
        """What is raised where the time for a wait is over."""
        why = self._why()
        told = "no batch came in the time given" + (f": {why}" if why else "")
        return DeadlineExceeded(told, code="DEADLINE_EXCEEDED")

    def _why(self) -> str:
        """Empty: no batch was there."""
        held, request = self._books.held, self._request
        if 0 < request.max_unacked <= held:
            return f"{held} are not acknowledged, and max_unacked is {request.max_unacked}"
        if held and request.max_unacked_tokens:
            return f"{held} are not acknowledged, and max_unacked_tokens is {request.max_unacked_tokens}"
        return ""
