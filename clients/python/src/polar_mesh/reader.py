"""Reading a server stream in a thread, so that waiting for a message can have a limit without cutting the stream."""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any, Generic, TypeVar

import grpc

from .errors import Internal, PolarError, Unavailable, from_rpc_error
from .limits import STREAM_SILENCE_MAX_S

M = TypeVar("M")


class Ended(Exception):
    """The stream is over: the server ended it with OK, or ``cut`` was called."""


class Silent(Unavailable):
    """What a call that says nothing is taken for. The next one may say nothing for ``next_s``: longer where it is not seen
    whether a message is on its way, which would never come whole over a slow link."""

    def __init__(self, silence_s: float, *, is_seen: bool) -> None:
        super().__init__(f"nothing came for {silence_s:g} s", code="UNAVAILABLE", retryable=True)
        self.next_s = silence_s if is_seen else max(silence_s, min(2 * silence_s, STREAM_SILENCE_MAX_S))


def start(thread: threading.Thread) -> None:
    """Start a reader's thread, once. Who waits for its first message does, and not who makes the reader: what a signal's
    handler raises meanwhile would leave a thread, and a call, that nobody has a hold of."""
    if thread.ident is None:
        thread.start()


class Reader(Generic[M]):
    """Reads one call, one message ahead; what is further is held back by the connection's flow control.

    The server sends something, progress at least, in ``silence_s`` seconds; if not, the call is taken as broken.
    """

    def __init__(self, call: Any, silence_s: float) -> None:
        self._call = call
        self._silence_s = silence_s
        self._changed = threading.Condition()
        self._item: M | Exception | None = None
        self._cut = False
        self._heard = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="polar-reader", daemon=True)

    def get(self, timeout_s: float) -> M | None:
        """The next message, or None when none came in ``timeout_s`` seconds. Raises PolarError, Ended."""
        start(self._thread)
        silent_at = self._heard + self._silence_s
        wait_s = max(min(timeout_s, silent_at - time.monotonic(), threading.TIMEOUT_MAX), 0.0)
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None or self._cut, wait_s)
            if self._cut:
                raise Ended
            item, self._item = self._item, None
            self._changed.notify_all()
        if item is None:
            if time.monotonic() < silent_at:
                return None
            raise Silent(self._silence_s, is_seen=False)
        self._heard = time.monotonic()
        if isinstance(item, Exception):
            raise item
        return item

    def all(self, silence_s: float) -> list[M]:
        """What is left of a stream without progress messages: of its first one its call has the limit alone, as it may
        still be made; from then on the next one comes in ``silence_s`` seconds. Raises PolarError."""
        messages: list[M] = []
        try:
            while True:
                message = self.get(math.inf)
                self._silence_s = silence_s
                if message is not None:
                    messages.append(message)
        except Ended:
            return messages
        finally:
            self.cut()

    def cut(self) -> None:
        """End the call; the thread ends with it."""
        # Threads do not run on at the interpreter's end: one may have stopped with a lock that is needed here, gRPC's say.
        if sys.is_finalizing():
            return
        with self._changed:
            self._cut = True
            self._changed.notify_all()
        self._call.cancel()

    def _run(self) -> None:
        try:
            for message in self._call:
                self._put(message)
            self._put(Ended())
        except grpc.RpcError as error:
            self._put(from_rpc_error(error))
        except PolarError as error:
            self._put(error)
        except Exception as error:  # A thread that ends without a word would look like silence.
            self._put(Internal(f"the stream could not be read: {error}", code="INTERNAL"))

    def _put(self, item: M | Exception) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._item is None or self._cut)
            self._item = item
            self._changed.notify_all()
