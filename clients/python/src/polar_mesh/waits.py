"""Why no batch comes: the mesh is not reached, the trainer has not acknowledged what it holds, or all are dropped."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from .errors import DeadlineExceeded, PolarError, Unavailable
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesRequest
from .ledger import Books
from .limits import CALL_S, HAND_OVER_S, HELD_WARN_S
from .retry import Backoff

_log = logging.getLogger("polar_mesh")


class Waits:
    """The waits of one stream for its next batch; each message, and each answer that a batch needs, is waited for
    ``with`` it.

    Only these waits count in the time for reaching a server that went away.
    """

    def __init__(
        self, books: Books, request: StreamTrajectoriesRequest, backoff: Backoff, dropped: Mapping[str, int]
    ) -> None:
        self._books = books
        #: Groups since the last batch that was given out, by reason.
        self._dropped = dropped
        self._request = request
        self._backoff = backoff
        self._broken: PolarError | None = None
        self._warned = False
        self.over()

    def over(self) -> None:
        """A batch is given out."""
        self._waited_s = 0.0

    def heard(self) -> None:
        """A message has come."""
        if self._broken is not None:
            self._broken, self._warned = None, False
        self._backoff.reset()

    def broken(self, error: PolarError) -> None:
        """The stream has ended with this, and is opened again."""
        self._broken = error
        self._warn(self._waited_s + time.monotonic() - self._began)

    def call_s(self, end: float) -> float:
        """Seconds for a call without which a batch is not handed over, in a wait that is over at ``end``."""
        return max(min(end - time.monotonic(), self._backoff.left_s, CALL_S), HAND_OVER_S)

    def failed(self, error: PolarError) -> PolarError:
        """Such a call has failed with this; returns what that is taken for: one without an answer is as a silent stream."""
        if isinstance(error, DeadlineExceeded):
            told = f"a call was not answered in its time: {error.message}"
            error = Unavailable(told, code="UNAVAILABLE", retryable=True)
        self.broken(error)
        return error

    def __enter__(self) -> None:
        """The next message, or the answer to a call, is waited for."""
        self._began = time.monotonic()
        self._backoff.go_on()
        self._warn(self._waited_s)

    def __exit__(self, *_: object) -> None:
        self._waited_s += time.monotonic() - self._began
        self._backoff.hold()

    def too_long(self) -> DeadlineExceeded:
        """What is raised where the time for a wait is over; what the stream broke with is its cause."""
        why = self._why()
        told = "no batch came in the time given" + (f": {why}" if why else "")
        error = DeadlineExceeded(told, code="DEADLINE_EXCEEDED")
        error.__cause__ = self._broken
        return error

    def _warn(self, waited_s: float) -> None:
        """Log why no message brought a batch for long, where there is a reason; once, and once more behind an outage."""
        why = self._why()
        if why and not self._warned and waited_s > HELD_WARN_S:
            self._warned = True
            _log.warning("consumer %s: no batch for %d s, as %s", self._request.consumer, HELD_WARN_S, why)

    def _why(self) -> str:
        """Empty: no batch was there."""
        if self._broken is not None:
            return f"the stream broke, and nothing has come since: {self._broken.message}"
        held, request = self._books.held, self._request
        if 0 < request.max_unacked <= held:
            return f"{held} are not acknowledged, and max_unacked is {request.max_unacked}"
        if held and request.max_unacked_tokens:
            return f"{held} are not acknowledged, and max_unacked_tokens is {request.max_unacked_tokens}"
        if self._dropped:
            each = ", ".join(f"{count} {reason}" for reason, count in sorted(self._dropped.items()))
            return f"the filter has dropped all groups since the last batch: {each}"
        return ""
