"""The stream of one consumer for asyncio, over as many connections as it takes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import grpc
import grpc.aio

from .arguments import end_of
from .batches import Batch
from .errors import Internal, PolarError, Unavailable, from_rpc_error
from .filters import Filter
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    AckTrajectoriesResponse,
    StreamTrajectoriesRequest,
    StreamTrajectoriesResponse,
)
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from .handover import STALE, HandOver
from .ledger import Books, Delivery, Intake, OfStream, by_seeks, check_consumer, delivery_of, is_void
from .limits import STREAM_SILENCE_S, VERSION_AGE_S
from .reader import Ended, Silent
from .retry import Backoff
from .waits import Waits

M = TypeVar("M")


class AioReader(Generic[M]):
    """Reads one call, one message ahead; a wait for a message can have a limit without cutting the call.

    The server sends something, progress at least, in ``silence_s`` seconds; if not, the call is taken as broken.
    """

    def __init__(self, call: Any, silence_s: float) -> None:
        self._call = call
        self._silence_s = silence_s
        self._heard = time.monotonic()
        self._coming = self._read()

    async def get(self, timeout_s: float) -> M | None:
        """The next message, or None when none came in ``timeout_s`` seconds. Raises PolarError, Ended."""
        left_s = min(timeout_s, self._silent_at() - time.monotonic())
        wait_s = None if left_s == math.inf else max(left_s, 0.0)
        # What is coming goes on coming, also where the caller is cancelled.
        done, _ = await asyncio.wait({self._coming}, timeout=wait_s)
        if not done:
            if time.monotonic() < self._silent_at():
                return None
            raise Silent(self._silence_s, is_seen=self._seen() is not None)
        self._heard = time.monotonic()
        try:
            message = self._coming.result()
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.CancelledError:
            raise Ended from None
        if message is grpc.aio.EOF:
            raise Ended
        if message is None:  # What could not be decoded, as grpc.aio has it.
            raise Internal("the stream could not be read", code="INTERNAL")
        if isinstance(message, PolarError):
            raise message
        self._coming = self._read()
        return message

    async def all(self, silence_s: float) -> list[M]:
        """As ``Reader.all``."""
        messages: list[M] = []
        try:
            while True:
                message = await self.get(math.inf)
                self._silence_s = silence_s
                if message is not None:
                    messages.append(message)
        except Ended:
            # A closed channel cancels its calls, which is no word of the server's.
            if self._coming.cancelled():
                raise asyncio.CancelledError from None
            return messages
        finally:
            self.cut()

    def _silent_at(self) -> float:
        seen = self._seen()
        return (self._heard if seen is None else max(self._heard, seen)) + self._silence_s

    def _seen(self) -> float | None:
        """When a part of a message came; a call by gRPC does not tell."""
        return getattr(self._call, "heard", None)

    def _read(self) -> asyncio.Future[M]:
        coming = asyncio.ensure_future(self._call.read())
        # Read ahead: of a stream that is dropped, asyncio would report how its call ended as an error that nobody saw.
        coming.add_done_callback(lambda done: done.cancelled() or done.exception())
        return coming

    def cut(self) -> None:
        """End the call."""
        self._call.cancel()
        self._coming.cancel()

    def __del__(self) -> None:
        self._call.cancel()


class AioServer(Protocol):
    """The calls of one consumer."""

    async def ack(
        self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None
    ) -> AckTrajectoriesResponse: ...

    async def nack(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None
    ) -> None: ...


class TrajectoryStream(AsyncIterator[Batch]):
    """As ``polar_mesh.TrajectoryStream``: every batch once, over all connections. One task iterates; any may ack."""

    def __init__(
        self,
        open_call: Callable[[StreamTrajectoriesRequest], Any],
        server: AioServer,
        request: StreamTrajectoriesRequest,
        *,
        reconnect_s: float,
        filter: Filter | None = None,
        on_dropped: Callable[[Batch], None] | None = None,
        silence_s: float = STREAM_SILENCE_S,
    ) -> None:
        self._open_call = open_call
        self._server = server
        self._request = request
        self._silence_s = silence_s
        self._books = Books()
        self._backoff = Backoff(reconnect_s)
        self._intake = Intake(self._books)
        self._hand_over = HandOver(filter, on_dropped)
        self._waits = Waits(self._books, request, self._backoff, self._hand_over.since)
        #: Groups that the filter dropped, by reason, since this object was made.
        self.dropped = self._hand_over.dropped
        #: Sessions that the filter dropped from groups, by reason, since this object was made.
        self.dropped_sessions = self._hand_over.dropped_sessions
        self._reader: AioReader[StreamTrajectoriesResponse] | None = None
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._asked = False
        self._policy_version = 0
        self._told = float("-inf")

    async def __anext__(self) -> Batch:
        try:
            return await self.next()
        except Ended:
            raise StopAsyncIteration from None

    async def next(self, timeout_s: float | None = None) -> Batch:
        """The next batch.

        Raises:
            DeadlineExceeded: none came within ``timeout_s`` seconds; the stream can be used on. Its cause is what the
                stream broke with, where nothing has come since.
            Unavailable: the server could not be reached for the client's ``reconnect_s`` seconds of waits.
            Aborted: another stream of this consumer was opened.
            NotFound: the consumer was deleted.
            polar_mesh.reader.Ended: the stream is closed.
            RuntimeError: another task waits for a batch of it, or it was opened in another event loop.
        """
        check_loop(self._loop)
        if self._asked:
            raise RuntimeError("another task waits for a batch of this stream: one asks, and hands them to the others")
        self._asked = True
        try:
            return await self._next(timeout_s)
        finally:
            self._asked = False

    @property
    def policy_version(self) -> int:
        """The current policy version as far as the server has told it."""
        return max(self._intake.policy_version, self._policy_version)

    async def ack(self, batches: Sequence[Batch]) -> list[Batch]:
        """Acknowledge batches; answers and errors as ``polar_mesh.TrajectoryStream.ack``."""
        check_consumer(batches, self._request.consumer)
        void: list[Batch] = []
        for seeks, group in (by_seeks(batches) or {self._books.seeks: []}).items():
            if not await self._ack([one.batch_id for one in group], seeks):
                void += group
        return void

    async def nack(self, batches: Sequence[Batch], delay_s: float = 0.0, reason: str = "") -> None:
        """Give batches back: they come again after ``delay_s`` seconds, at most a day."""
        check_consumer(batches, self._request.consumer)
        await self._give_back([delivery_of(batch) for batch in batches], delay_s, reason)

    async def aclose(self) -> None:
        """End the stream; batches that it gave can still be acknowledged while the client is open."""
        self._closed.set()
        self._cut()

    async def __aenter__(self) -> TrajectoryStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _next(self, timeout_s: float | None) -> Batch:
        end = end_of(timeout_s)
        while not self._closed.is_set():
            message = self._intake.first()
            if message is None:
                with self._waits:
                    await self._receive(end)
                continue
            try:
                batch = await self._handed_over(message, end)
                if batch is not None:
                    self._waits.over()
                    return batch
            except BaseException:
                self._intake.put_back(message)
                raise
        raise Ended

    async def _handed_over(self, message: TrajectoryBatch, end: float) -> Batch | None:
        """The batch; None where the trainer does not get it."""
        if not self._intake.take(message):
            return None
        hand_over = self._hand_over
        hand_over.check(message)
        if hand_over.asks_version(message):
            if time.monotonic() - self._told > VERSION_AGE_S:
                await self._ask(partial(self._ack, [], self._books.seeks), end)
            if hand_over.is_stale(message, self.policy_version):
                await self._ask(partial(self._give_back, [delivery_of(message)], 0.0, STALE), end)
                return None
        batch = hand_over.open(message, OfStream(self._request.consumer, self._books.seeks))
        if batch.dropped_reason:
            await self._ask(partial(self._ack, [batch.batch_id], self._books.seeks), end)
        hand_over.count(batch)
        return None if batch.dropped_reason else batch

    async def _ask(self, call: Callable[[float], Awaitable[object]], end: float) -> None:
        """As the method of ``polar_mesh.TrajectoryStream``."""
        with self._waits:
            while True:
                await self._pause(end)
                try:
                    await call(self._waits.call_s(end))
                    self._waits.heard()
                    return
                except PolarError as error:
                    self._delay(self._waits.failed(error))
                if time.monotonic() >= end:
                    raise self._waits.too_long()

    async def _ack(
        self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None = None
    ) -> bool:
        """False where it changed nothing: there was a seek since then."""
        answer = await self._server.ack(batch_ids, seeks, timeout_s)
        void = is_void(answer, seeks)
        if seeks == self._books.seeks and not void:
            self._books.acked(batch_ids, answer.floor)
        self._policy_version, self._told = answer.policy_version, time.monotonic()
        return not void

    async def _give_back(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None = None
    ) -> None:
        with self._books.giving_back(given) as latest:
            await self._server.nack(latest, delay_s, reason, timeout_s)

    async def _pause(self, end: float) -> None:
        """Wait until the next try may be. Raises Ended where the stream is closed."""
        not_before = self._backoff.not_before
        if await pause(self._closed, min(not_before, end) - time.monotonic()):
            raise Ended
        if end < not_before:
            raise self._waits.too_long()

    async def _receive(self, end: float) -> None:
        """Take in the next message."""
        while True:
            await self._pause(end)
            if self._reader is None:
                self._reader = AioReader(self._open_call(self._request), self._silence_s)
            try:
                message = await self._reader.get(end - time.monotonic())
            except PolarError as error:
                self._lost(error)
            except Ended:
                self._lost(Unavailable("the server ended the stream", code="UNAVAILABLE", retryable=True))
            else:
                if message is not None:
                    self._intake.receive(message)
                    self._waits.heard()
                    return
            if time.monotonic() >= end:
                raise self._waits.too_long()

    def _lost(self, error: PolarError) -> None:
        """Drop the broken call, and say when the next may be; raises when there is to be none."""
        self._cut()
        if isinstance(error, Silent):
            self._silence_s = error.next_s
        self._intake.broken(error)
        self._waits.broken(error)
        self._delay(error)

    def _delay(self, error: PolarError) -> None:
        if not self._closed.is_set():
            self._backoff.delay(error)

    def _cut(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cut()


def check_loop(own: asyncio.AbstractEventLoop) -> None:
    """Raises RuntimeError in any other: what comes is told in the own one, and a wait elsewhere would have no end."""
    if asyncio.get_running_loop() is not own:
        raise RuntimeError("this client belongs to another event loop: make one in each loop")


async def pause(stopped: asyncio.Event, delay_s: float) -> bool:
    """Wait; true when it was stopped."""
    if delay_s <= 0:
        return stopped.is_set()
    try:
        await asyncio.wait_for(stopped.wait(), delay_s)
    except asyncio.TimeoutError:
        return False
    return True
