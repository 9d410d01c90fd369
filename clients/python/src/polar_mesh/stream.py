"""The stream of one consumer, over as many connections as it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from .batches import Batch, read_batch
from .errors import DeadlineExceeded, PolarError, Unavailable
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    StreamTrajectoriesRequest,
    StreamTrajectoriesResponse,
)
from .limits import STREAM_SILENCE_S
from .reader import Ended, Reader
from .retry import Backoff


class Ledger:
    """Which batches the trainer holds and which it acknowledged. Batches know it, not their stream."""

    def __init__(self, send: Callable[[Sequence[int]], int]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._held: set[int] = set()
        self._acked: set[int] = set()

    def take(self, batch_id: int) -> bool:
        """True for a batch that is to be given out; false when it was already."""
        with self._lock:
            if batch_id in self._held or batch_id in self._acked:
                return False
            self._held.add(batch_id)
            return True

    def ack(self, batches: Sequence[Batch]) -> None:
        ids = [batch.batch_id for batch in batches]
        floor = self._send(ids)
        with self._lock:
            self._held.difference_update(ids)
            self._acked.update(ids)
            # Up to the floor the server knows by itself; so the set stays as small as what is out of order.
            self._acked = {one for one in self._acked if one > floor}


class TrajectoryStream(Iterator[Batch]):
    """Batches of one consumer, oldest first, then new ones as they come; it never ends by itself.

    Every batch comes once in the life of this object, whatever happens to the connection: what the trainer still
    holds and what it acknowledged is not given out again. A batch that was given to an earlier stream (of a process
    that died, say) and not acknowledged comes with ``redelivered`` set. One thread iterates; any thread may ack.
    """

    def __init__(
        self,
        open_call: Callable[[StreamTrajectoriesRequest], Any],
        ack: Callable[[str, Sequence[int]], int],
        request: StreamTrajectoriesRequest,
        *,
        reconnect_s: float,
        silence_s: float = STREAM_SILENCE_S,
    ) -> None:
        self._open_call = open_call
        self._ledger = Ledger(partial(ack, request.consumer))
        self._request = request
        self._silence_s = silence_s
        self._closed = threading.Event()
        self._backoff = Backoff(reconnect_s, self._closed)
        self._reader: Reader[StreamTrajectoriesResponse] | None = None
        self._lock = threading.Lock()

    def __next__(self) -> Batch:
        return self.next()

    def next(self, timeout_s: float | None = None) -> Batch:
        """The next batch.

        Raises:
            DeadlineExceeded: none came within ``timeout_s`` seconds; the stream can be used on.
            Unavailable: the server could not be reached for the client's ``reconnect_s`` seconds.
            Aborted: another stream of this consumer was opened.
            StopIteration: the stream is closed.
        """
        end = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        self._backoff.reset()
        while True:
            message = self._receive(end)
            if message.HasField("batch") and self._ledger.take(message.batch.batch_id):
                return read_batch(message.batch, self._ledger.ack)

    def ack(self, batches: Sequence[Batch]) -> None:
        """Acknowledge several batches at once; returns when that is durable. Safe to repeat."""
        self._ledger.ack(batches)

    def close(self) -> None:
        """End the stream; batches that it gave can still be acknowledged while the client is open."""
        with self._lock:
            self._closed.set()
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.cut()

    def __enter__(self) -> TrajectoryStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _receive(self, end: float) -> StreamTrajectoriesResponse:
        while not self._closed.is_set():
            try:
                message = self._open().get(end - time.monotonic())
            except PolarError as error:
                self._lost(error)
            except Ended:
                self._lost(Unavailable("the server ended the stream", code="UNAVAILABLE", retryable=True))
            else:
                if message is not None:
                    self._backoff.reset()
                    return message
            if time.monotonic() >= end:
                raise DeadlineExceeded("no batch came in the time given", code="DEADLINE_EXCEEDED")
        raise StopIteration

    def _open(self) -> Reader[StreamTrajectoriesResponse]:
        with self._lock:
            if self._closed.is_set():
                raise Ended
            if self._reader is None:
                self._reader = Reader(self._open_call(self._request), self._silence_s)
            return self._reader

    def _lost(self, error: PolarError) -> None:
        """Drop the broken call and wait before the next; raises when there is to be none."""
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.cut()
        try:
            self._backoff.pause(error)
        except PolarError:
            if not self._closed.is_set():
                raise
