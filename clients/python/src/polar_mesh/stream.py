"""The stream of one consumer, over as many connections as it takes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

from .arguments import end_of
from .batches import Batch
from .errors import PolarError, Unavailable
from .filters import Filter
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesRequest
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from .handover import STALE, HandOver
from .http_reader import HttpReader
from .http_stream import HttpCall
from .ledger import Intake, Ledger, Server, delivery_of
from .limits import STREAM_SILENCE_S
from .reader import Ended, Reader, Silent
from .retry import Backoff
from .waits import Waits
from .wire import StreamMessage


class TrajectoryStream(Iterator[Batch]):
    """Batches of one consumer, oldest first, then new ones as they come; it never ends by itself.

    Every batch comes once in the life of this object, whatever happens to the connection: what the trainer still
    holds and what it acknowledged is not given out again. A batch that was given to an earlier stream (of a process
    that died, say) and not acknowledged comes with ``redelivered`` set, and so does what is given back (``nack``) and
    what a seek brings again. One thread iterates; any thread may ack or nack.

    What the stream's filter drops is acknowledged here, and told: ``on_dropped`` is called with each batch before that,
    and ``dropped`` counts.
    """

    def __init__(
        self,
        open_call: Callable[[StreamTrajectoriesRequest], Any],
        server: Server,
        request: StreamTrajectoriesRequest,
        *,
        reconnect_s: float,
        filter: Filter | None = None,
        on_dropped: Callable[[Batch], None] | None = None,
        silence_s: float = STREAM_SILENCE_S,
    ) -> None:
        self._open_call = open_call
        self._ledger = Ledger(server, request.consumer)
        self._books = self._ledger.books
        self._intake = Intake(self._books)
        self._request = request
        self._hand_over = HandOver(filter, on_dropped)
        #: Groups that the filter dropped, by reason, since this object was made.
        self.dropped = self._hand_over.dropped
        #: Sessions that the filter dropped from groups, by reason, since this object was made.
        self.dropped_sessions = self._hand_over.dropped_sessions
        self._silence_s = silence_s
        self._closed = threading.Event()
        self._process = os.getpid()
        #: The thread that waits for a batch.
        self._asker: int | None = None
        self._backoff = Backoff(reconnect_s)
        self._waits = Waits(self._books, request, self._backoff, self._hand_over.since)
        self._reader: Reader[StreamMessage] | HttpReader | None = None
        self._lock = threading.Lock()

    def __next__(self) -> Batch:
        return self.next()

    def next(self, timeout_s: float | None = None) -> Batch:
        """The next batch.

        Raises:
            DeadlineExceeded: none came within ``timeout_s`` seconds; the stream can be used on. Its cause is what the
                stream broke with, where nothing has come since.
            Unavailable: the server could not be reached for the client's ``reconnect_s`` seconds of waits.
            Aborted: another stream of this consumer was opened.
            NotFound: the consumer was deleted.
            StopIteration: the stream is closed.
            RuntimeError: this process was forked from the one that opened the stream, or another thread waits for a batch of
                it.
        """
        if os.getpid() != self._process:
            raise RuntimeError("this stream was opened before the fork: open one in each process, with shared=True")
        end = end_of(timeout_s)
        thread = threading.get_ident()
        if self._asker not in (None, thread):
            raise RuntimeError(
                "another thread waits for a batch of this stream: one asks, and hands them to the others, or each opens its "
                "own, with shared=True"
            )
        # Set and unset without a call, behind which a signal's handler may raise: the batch would be nobody's.
        self._asker = thread
        try:
            while not self._closed.is_set():
                message = self._intake.first()
                if message is None:
                    with self._waits:
                        self._receive(end)
                    continue
                try:
                    batch = self._handed_over(message, end)
                    if batch is not None:
                        self._waits.over()
                        return batch
                except BaseException:
                    self._intake.put_back(message)
                    raise
            raise StopIteration
        finally:
            self._asker = None

    @property
    def policy_version(self) -> int:
        """The current policy version as far as the server has told it."""
        return max(self._intake.policy_version, self._ledger.policy_version)

    @property
    def arriving(self) -> bool:
        """Whether a message has come in part, so that a wait which is over was not long enough. Never so by gRPC, which does
        not tell."""
        reader = self._reader
        return isinstance(reader, HttpReader) and reader.arriving

    def ack(self, batches: Sequence[Batch]) -> list[Batch]:
        """Acknowledge several batches at once; returns when that is durable. Safe to repeat.

        Returns those that came before a seek of the consumer, which are not acknowledged by this (see ``Batch.ack``);
        nearly always none.

        Raises:
            InvalidArgument: one of them came to another consumer; then none is acknowledged.
        """
        return self._ledger.ack(batches)

    def nack(self, batches: Sequence[Batch], delay_s: float = 0.0, reason: str = "") -> None:
        """Give several batches back at once: they come again after ``delay_s`` seconds, at most a day."""
        self._ledger.nack(batches, delay_s, reason)

    def close(self) -> None:
        """End the stream; batches that it gave can still be acknowledged while the client is open."""
        # The connection is that of the process which opened it, and nobody here may hold its locks.
        if os.getpid() != self._process:
            return
        with self._lock:
            self._closed.set()
        self._drop()

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
        # At the interpreter's end locks may be held by threads that run no more; the connection ends with the process.
        if not sys.is_finalizing():
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream stays in the process that opened it: open one in each, with shared=True")

    def _handed_over(self, message: TrajectoryBatch, end: float) -> Batch | None:
        """The batch; None where the trainer does not get it."""
        if not self._intake.take(message):
            return None
        hand_over, ledger = self._hand_over, self._ledger
        hand_over.check(message)
        if hand_over.asks_version(message):
            if ledger.version_is_old:
                self._ask(partial(ledger.ack_ids, []), end)
            if hand_over.is_stale(message, self.policy_version):
                self._ask(partial(ledger.give_back, [delivery_of(message)], 0.0, STALE), end)
                return None
        batch = hand_over.open(message, ledger.since())
        if batch.dropped_reason:
            self._ask(partial(ledger.ack_ids, [batch.batch_id]), end)
        hand_over.count(batch)
        return None if batch.dropped_reason else batch

    def _ask(self, call: Callable[[float], None], end: float) -> None:
        """Make a call without which a batch is not handed over: as often, and as long, as the stream would be opened again."""
        with self._waits:
            while True:
                self._pause(end)
                try:
                    call(self._waits.call_s(end))
                    self._waits.heard()
                    return
                except PolarError as error:
                    self._delay(self._waits.failed(error))
                if time.monotonic() >= end:
                    raise self._waits.too_long()

    def _pause(self, end: float) -> None:
        """Wait until the next try may be. Raises StopIteration where the stream is closed."""
        not_before = self._backoff.not_before
        pause_s = min(not_before, end) - time.monotonic()
        if self._closed.wait(pause_s) if pause_s > 0 else self._closed.is_set():
            raise StopIteration
        if end < not_before:
            raise self._waits.too_long()

    def _receive(self, end: float) -> None:
        """Take in the next message."""
        while True:
            self._pause(end)
            try:
                message = self._open().get(end - time.monotonic())
                if message is not None:
                    self._intake.receive(message)  # type: ignore[arg-type]
            except PolarError as error:
                self._lost(error)
            except Ended:
                self._lost(Unavailable("the server ended the stream", code="UNAVAILABLE", retryable=True))
            except BaseException:
                # Raised by a signal's handler, say: what had come may be lost on its way here. The next call brings it again.
                self._drop()
                raise
            else:
                if message is not None:
                    self._waits.heard()
                    return
            if time.monotonic() >= end:
                raise self._waits.too_long()

    def _open(self) -> Reader[StreamMessage] | HttpReader:
        with self._lock:
            if self._closed.is_set():
                raise Ended
            if self._reader is None:
                call = self._open_call(self._request)
                kind = HttpReader if isinstance(call, HttpCall) else Reader
                self._reader = kind(call, self._silence_s)
            return self._reader

    def _lost(self, error: PolarError) -> None:
        """Drop the broken call, and say when the next may be; raises when there is to be none."""
        self._drop()
        if isinstance(error, Silent):
            self._silence_s = error.next_s
        self._intake.broken(error)
        self._waits.broken(error)
        self._delay(error)

    def _delay(self, error: PolarError) -> None:
        if not self._closed.is_set():
            self._backoff.delay(error)

    def _drop(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.cut()
