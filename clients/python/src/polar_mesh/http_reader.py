"""Reading a trajectory stream over HTTP in the thread that asks for its messages."""

from __future__ import annotations

import threading
import time

from .errors import PolarError
from .http_stream import HttpCall
from .reader import Ended, Silent, start
from .wire import StreamMessage


class HttpReader:
    """As ``Reader``: what has not been asked for waits in the kernel, and no thread hands over what another has read.

    Only the connection is made in a thread of its own, so that a wait for it can have a limit.
    """

    def __init__(self, call: HttpCall, silence_s: float) -> None:
        self._call = call
        self._silence_s = silence_s
        self._opened = threading.Event()
        self._failure: PolarError | None = None
        self._cut = False
        self._thread = threading.Thread(target=self._open, name="polar-reader", daemon=True)

    def get(self, timeout_s: float) -> StreamMessage | None:
        """The next message, or None when it has not come whole in ``timeout_s`` seconds. Raises PolarError, Ended."""
        start(self._thread)
        now = time.monotonic()
        # What came while nobody asked is looked at in any case.
        until = now + max(min(timeout_s, self._silent_at() - now, threading.TIMEOUT_MAX), 0.0)
        message: StreamMessage | None = None
        if self._opened.wait(until - now):
            message = self._poll(until)
        if self._cut:
            raise Ended
        if message is None and time.monotonic() >= self._silent_at():
            raise Silent(self._silence_s, is_seen=True)
        return message

    @property
    def arriving(self) -> bool:
        """Whether a message has come in part."""
        return self._call.arriving

    def cut(self) -> None:
        """End the call."""
        self._cut = True
        self._opened.set()
        self._call.cancel()

    def _silent_at(self) -> float:
        return self._call.heard + self._silence_s

    def _poll(self, until: float) -> StreamMessage | None:
        try:
            if self._failure is not None:
                raise self._failure
            return self._call.poll(until)
        except PolarError:
            if self._cut:
                raise Ended from None
            raise

    def _open(self) -> None:
        try:
            self._call.open()
        except PolarError as error:
            self._failure = error
        self._opened.set()
