"""Trying again: with growing pauses, until a time is over."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from .arguments import seconds
from .errors import DeadlineExceeded, NotFound, PolarError, Unavailable, from_rpc_error
from .limits import RETRY_PAUSE_MAX_S, RETRY_PAUSE_S, TRY_MAX_S

T = TypeVar("T")


class Backoff:
    """The pauses of one run of tries, ended by ``limit_s`` seconds without a success or by ``stopped``."""

    def __init__(self, limit_s: float, stopped: threading.Event | None = None) -> None:
        self._limit_s = limit_s
        self._stopped = stopped or threading.Event()
        self.reset()

    def reset(self) -> None:
        """A try succeeded: pauses and time start again."""
        self._tries = 0
        self._left_s = self._limit_s
        #: ``time.monotonic()`` before which the next try is too early.
        self.not_before = -math.inf
        self.go_on()

    def hold(self) -> None:
        """Nobody tries from now on: the time stands still."""
        self._left_s = self.left_s

    def go_on(self) -> None:
        """The time goes on from where it stood."""
        self._end = time.monotonic() + self._left_s

    @property
    def left_s(self) -> float:
        """Seconds until no further try is made; never negative."""
        return max(0.0, self._end - time.monotonic())

    def delay(self, error: PolarError) -> float:
        """Seconds to wait before the next try; raises ``error`` when it is final or the time is over."""
        if not error.retryable:
            raise error
        if self.left_s <= 0:
            self.reset()  # Whoever tries once more has the whole time.
            raise error
        pause_s = min(RETRY_PAUSE_S * 2**self._tries, RETRY_PAUSE_MAX_S) * random.uniform(0.5, 1.0)
        self._tries = min(self._tries + 1, 16)
        delay_s = min(max(pause_s, error.retry_after_s), self.left_s)
        self.not_before = time.monotonic() + delay_s
        return delay_s

    def pause(self, error: PolarError, end: float = math.inf) -> None:
        """Wait before the next try, not beyond ``end``; raises ``error`` when it is final, the time is over, or the client
        is closed."""
        if self._stopped.wait(min(self.delay(error), max(end - time.monotonic(), 0))):
            raise error


class Tries:
    """The failures of a call that is safe to repeat, until ``timeout_s`` seconds are over.

    The last failure says why: Unavailable, rather than DeadlineExceeded, where the server was not reached at all.
    """

    def __init__(self, timeout_s: float, stopped: threading.Event | None = None) -> None:
        self.backoff = Backoff(seconds("timeout_s", timeout_s), stopped)
        self._unreached: PolarError | None = None
        self._failures = 0

    @property
    def left_s(self) -> float:
        """Seconds for the next try."""
        return min(max(self.backoff.left_s, 0.001), TRY_MAX_S)

    def failed(self, raised: grpc.RpcError | PolarError) -> PolarError:
        """The typed form of a failure, which a pause may follow; raises what was found out before it, if that says more."""
        error = raised if isinstance(raised, PolarError) else from_rpc_error(raised)
        self._failures += 1
        if isinstance(error, DeadlineExceeded) and self._unreached is not None:
            raise self._unreached from raised
        if isinstance(error, Unavailable):
            self._unreached = error
        return error

    def is_gone(self, error: PolarError) -> bool:
        """Whether a call that deletes failed with this because an earlier try had deleted it: its answer was lost."""
        return isinstance(error, NotFound) and self._failures > 1


def call(
    attempt: Callable[[float], T], timeout_s: float, stopped: threading.Event, gone: T | None = None
) -> T:
    """Run a call until it succeeds, fails for good, or the time is over. ``attempt`` gets the seconds that are left.

    ``gone`` is the answer of a call that deletes, where an earlier try of it has.
    """
    tries = Tries(timeout_s, stopped)
    while True:
        try:
            return attempt(tries.left_s)
        except (grpc.RpcError, PolarError) as raised:
            error = tries.failed(raised)
            if gone is not None and tries.is_gone(error):
                return gone
            tries.backoff.pause(error)
