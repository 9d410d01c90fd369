"""Trying again: with growing pauses, until a time is over."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from .errors import DeadlineExceeded, PolarError, Unavailable, from_rpc_error
from .limits import RETRY_PAUSE_MAX_S, RETRY_PAUSE_S

T = TypeVar("T")


class Backoff:
    """The pauses of one run of tries, ended by ``limit_s`` seconds without a success or by ``stopped``."""

    def __init__(self, limit_s: float, stopped: threading.Event) -> None:
        self._limit_s = limit_s
        self._stopped = stopped
        self.reset()

    def reset(self) -> None:
        """A try succeeded: pauses and time start again."""
        self._tries = 0
        self._end = time.monotonic() + self._limit_s

    @property
    def left_s(self) -> float:
        """Seconds until no further try is made; never negative."""
        return max(0.0, self._end - time.monotonic())

    def pause(self, error: PolarError) -> None:
        """Wait before the next try; raises ``error`` when it is final, the time is over, or the client is closed."""
        if not error.retryable or self.left_s <= 0:
            raise error
        pause_s = min(RETRY_PAUSE_S * 2**self._tries, RETRY_PAUSE_MAX_S) * random.uniform(0.5, 1.0)
        self._tries = min(self._tries + 1, 16)
        if self._stopped.wait(min(max(pause_s, error.retry_after_s), self.left_s)):
            raise error


def call(attempt: Callable[[float], T], timeout_s: float, stopped: threading.Event) -> T:
    """Run a call that is safe to repeat until it succeeds, fails for good, or ``timeout_s`` seconds are over.

    ``attempt`` gets the seconds that are left. The last failure says why: Unavailable, rather than
    DeadlineExceeded, where the server was not reached at all.
    """
    backoff = Backoff(timeout_s, stopped)
    unreached: PolarError | None = None
    while True:
        try:
            return attempt(max(backoff.left_s, 0.001))
        except grpc.RpcError as raised:
            error = from_rpc_error(raised)
            if isinstance(error, DeadlineExceeded) and unreached is not None:
                raise unreached from raised
            if isinstance(error, Unavailable):
                unreached = error
            backoff.pause(error)
