"""Which batches a trainer holds, and what it has done with the others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from .batches import Batch
from .errors import InvalidArgument, NotFound, PolarError
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    AckTrajectoriesResponse,
    StreamTrajectoriesResponse,
)
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from .limits import ACKED_KEPT, VERSION_AGE_S
from .wire import Cut


class Delivery(NamedTuple):
    """One time that a batch was sent: repeating the call that gives it back leaves later ones alone."""

    batch_id: int
    #: From 1; 0: whichever.
    count: int  # type: ignore[assignment]


def delivery_of(batch: Batch | TrajectoryBatch) -> Delivery:
    return Delivery(batch.batch_id, batch.delivery_count)


class Server(Protocol):
    """The calls of one consumer."""

    def ack(
        self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None
    ) -> AckTrajectoriesResponse: ...

    def nack(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None
    ) -> None: ...


class Sent(NamedTuple):
    """What was sent under a batch id."""

    #: Another one: another group, which got the id after the server had lost its last ones.
    ready_ms: int
    #: How many times it had been given back.
    nacks: int
    #: The delivery that was given out, and the last one of those that new connections have brought of it since.
    delivery: int
    latest: int


def _sent(message: TrajectoryBatch) -> Sent:
    # Asked for some times of each.
    head = message.head if isinstance(message, Cut) else message
    ready, delivery = head.ready_time, head.delivery_count
    return Sent(ready.seconds * 1000 + ready.nanos // 1_000_000, head.nack_count, delivery, delivery)


class Books:
    """What is known of each batch, without any call. Thread-safe.

    A batch is given out once, unless it comes for a reason: it was given back meanwhile, or the consumer was sought.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, Sent] = {}
        #: Given back by this trainer, as it came before.
        self._nacked: dict[int, Sent] = {}
        #: Acknowledged by this trainer, oldest first: ``ready_ms``.
        self._acked: dict[int, int] = {}
        self._seeks: int | None = None

    @property
    def seeks(self) -> int | None:
        """How many times the consumer was sought, as the server last told: an acknowledgement counts for no later one."""
        return self._seeks

    def sought(self, seeks: int) -> None:
        """The server has told how many times the consumer was sought."""
        with self._lock:
            if seeks > (self._seeks or 0):
                self._forget(seeks)
            self._seeks = max(seeks, self._seeks or 0)

    def deleted(self) -> None:
        """The consumer was deleted; under its name there may be another one, which is sent everything."""
        with self._lock:
            self._forget(None)

    def _forget(self, seeks: int | None) -> None:
        for known in (self._held, self._nacked, self._acked):
            known.clear()
        self._seeks = seeks

    @property
    def held(self) -> int:
        """Batches that the trainer has and has neither acknowledged nor given back."""
        return len(self._held)

    def take(self, message: TrajectoryBatch) -> bool:
        """True for a batch that is to be given out, and counts as held; false when it was already."""
        with self._lock:
            if self._knows(message):
                return False
            self._nacked.pop(message.batch_id, None)
            self._held[message.batch_id] = _sent(message)
            return True

    def knows(self, message: TrajectoryBatch) -> bool:
        """Whether it was given out already; where the trainer holds it, this is its delivery from now on, too."""
        with self._lock:
            return self._knows(message)

    def _knows(self, message: TrajectoryBatch) -> bool:
        batch_id = message.batch_id
        held, nacked, acked_ms = self._held.get(batch_id), self._nacked.get(batch_id), self._acked.get(batch_id)
        if held is None and nacked is None and acked_ms is None:
            return False
        sent = _sent(message)
        if held is not None and _same(held, sent):
            self._held[batch_id] = held._replace(latest=max(held.latest, sent.latest))
            return True
        # One that was sent before the server was told of an earlier delivery alone is not given back by that.
        if nacked is not None and _same(nacked, sent) and sent.delivery <= nacked.latest:
            return True
        return acked_ms == sent.ready_ms

    def put_back(self, batch_id: int) -> None:
        """It was taken, and nothing could be done with it, nor could it be given back."""
        with self._lock:
            self._held.pop(batch_id, None)
            self._nacked.pop(batch_id, None)

    def acked(self, batch_ids: Sequence[int], floor: int) -> None:
        with self._lock:
            for one in batch_ids:
                sent = self._held.pop(one, None) or self._nacked.pop(one, None)
                # What a seek has made void is not known any more, and comes again.
                if sent is not None:
                    self._acked[one] = sent.ready_ms
            # The server sends nothing up to the floor, but what it sent before may still be on its way.
            while len(self._acked) > ACKED_KEPT and (oldest := next(iter(self._acked))) <= floor:
                del self._acked[oldest]

    @contextmanager
    def giving_back(self, given: Sequence[Delivery]) -> Iterator[list[Delivery]]:
        """For the call that gives them back, as they may come again before it has returned: of what the trainer holds, or has
        given back, the last delivery. What a call that fails was to give back is held as before, where it has not come again."""
        with self._lock:
            moved = {one.batch_id for one in given if self._holds(one)}
            self._nacked.update((one, self._held.pop(one)) for one in moved)
            latest = [self._latest(one) for one in given]
        try:
            yield latest
        except BaseException:
            with self._lock:
                self._held.update((one, self._nacked.pop(one)) for one in moved if one in self._nacked)
            raise

    def _holds(self, given: Delivery) -> bool:
        held = self._held.get(given.batch_id)
        return held is not None and held.delivery == given.count

    def _latest(self, given: Delivery) -> Delivery:
        known = self._nacked.get(given.batch_id)
        return Delivery(given.batch_id, known.latest) if known is not None and known.delivery == given.count else given


def _same(known: Sent, sent: Sent) -> bool:
    """Whether it is what is known, and was not given back since."""
    return known.ready_ms == sent.ready_ms and sent.nacks <= known.nacks


class Intake:
    """What has been received and not yet handed over. For one thread."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._queue: deque[TrajectoryBatch] = deque()
        #: As the last message told.
        self.policy_version = 0

    def receive(self, response: StreamTrajectoriesResponse) -> None:
        """Take a message of the stream; to be called when nothing is left of the one before."""
        self.policy_version = response.policy_version
        self._books.sought(response.seeks)
        if response.HasField("batch"):
            self._queue.append(response.batch)
            self._queue.extend(response.more)

    def broken(self, error: PolarError) -> None:
        """The stream has ended with this."""
        if isinstance(error, NotFound):
            self._books.deleted()

    def first(self) -> TrajectoryBatch | None:
        """The next one that is to be given out; it is that until it is taken."""
        while self._queue and self._books.knows(self._queue[0]):
            self._queue.popleft()
        return self._queue[0] if self._queue else None

    def take(self, first: TrajectoryBatch) -> bool:
        """It is being handed over, and counts as held; false where it is given out no more."""
        taken = self._books.take(first)
        self._queue.popleft()
        return taken

    def put_back(self, message: TrajectoryBatch) -> None:
        """It could not be handed over, or not be taken: it is the next one again."""
        self._books.put_back(message.batch_id)
        if not self._queue or self._queue[0] is not message:
            self._queue.appendleft(message)


_BY_STREAM = (
    "a batch of polar_mesh.aio, and one that was pickled, is {0} by a stream of its consumer: "
    "await stream.{1}([batch]), or stream.{1}([batch])"
)


class OfStream:
    """What a batch says of where it came from; only a stream of its consumer can acknowledge it."""

    def __init__(self, consumer: str, seeks: int | None) -> None:
        self.consumer = consumer
        #: Of its consumer, when the batch came.
        self.seeks = seeks

    def ack(self, batches: Sequence[Batch]) -> list[Batch]:
        raise TypeError(_BY_STREAM.format("acknowledged", "ack"))

    def nack(self, batches: Sequence[Batch], delay_s: float, reason: str) -> None:
        raise TypeError(_BY_STREAM.format("given back", "nack"))


class Since(OfStream):
    """The same, in the process of its stream, which batches are acknowledged by."""

    def __init__(self, consumer: str, seeks: int | None, ledger: Ledger) -> None:
        super().__init__(consumer, seeks)
        self._ledger = ledger

    def ack(self, batches: Sequence[Batch]) -> list[Batch]:
        return self._ledger.ack(batches)

    def nack(self, batches: Sequence[Batch], delay_s: float, reason: str) -> None:
        self._ledger.nack(batches, delay_s, reason)

    def __deepcopy__(self, _: object) -> Since:
        return self

    def __reduce__(self) -> tuple[type[OfStream], tuple[str, int | None]]:
        return OfStream, (self.consumer, self.seeks)


def check_consumer(batches: Sequence[Any], consumer: str) -> None:
    """Raises InvalidArgument for a batch of another consumer: the same ids stand for the same groups there.

    TypeError for what is no list of batches.
    """
    if isinstance(batches, Batch):
        raise TypeError("one Batch was given in place of several: give [batch]")
    for batch in batches:
        if not isinstance(batch, Batch):
            told = f"the batches themselves are needed, and one of these is a {type(batch).__name__}"
            raise TypeError(f"{told}: by id, there are client.ack(consumer, ids) and client.nack(consumer, ids)")
        origin = getattr(batch._ledger, "consumer", consumer)
        if origin != consumer:
            told = f"batch {batch.batch_id} came to consumer {origin}, and this is a stream of {consumer}"
            raise InvalidArgument(told, code="INVALID_ARGUMENT", reason="INVALID_REQUEST")


def by_seeks(batches: Sequence[Batch]) -> dict[int | None, list[Batch]]:
    """They by the seeks that they came after: an acknowledgement counts for no later delivery of a batch."""
    groups: dict[int | None, list[Batch]] = {}
    for batch in batches:
        groups.setdefault(getattr(batch._ledger, "seeks", None), []).append(batch)
    return groups


def is_void(answer: AckTrajectoriesResponse, seeks: int | None) -> bool:
    """Whether a call of after so many seeks changed nothing, as there was a later one."""
    return seeks is not None and answer.seeks > seeks


class Ledger:
    """The same, told to the server. Batches know it, not their stream."""

    def __init__(self, server: Server, consumer: str) -> None:
        self.books = Books()
        self.consumer = consumer
        self._server = server
        #: As the server last told, and when that was.
        self.policy_version = 0
        self._told = float("-inf")
        self._since = Since(consumer, None, self)

    def since(self) -> Since:
        """For the batches of the message that was received last."""
        if self._since.seeks != self.books.seeks:
            self._since = Since(self.consumer, self.books.seeks, self)
        return self._since

    def ack(self, batches: Sequence[Batch]) -> list[Batch]:
        """Returns those that came before a seek, which are not acknowledged."""
        check_consumer(batches, self.consumer)
        void: list[Batch] = []
        for seeks, group in (by_seeks(batches) or {self.books.seeks: []}).items():
            if not self._ack([one.batch_id for one in group], seeks):
                void += group
        return void

    def nack(self, batches: Sequence[Batch], delay_s: float, reason: str) -> None:
        check_consumer(batches, self.consumer)
        self.give_back([delivery_of(batch) for batch in batches], delay_s, reason)

    def ack_ids(self, batch_ids: Sequence[int], timeout_s: float | None = None) -> None:
        self._ack(batch_ids, self.books.seeks, timeout_s)

    def _ack(self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None = None) -> bool:
        """False where it changed nothing: there was a seek since then."""
        answer = self._server.ack(batch_ids, seeks, timeout_s)
        void = is_void(answer, seeks)
        if seeks == self.books.seeks and not void:
            self.books.acked(batch_ids, answer.floor)
        self.policy_version = answer.policy_version
        self._told = time.monotonic()
        return not void

    def give_back(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None = None
    ) -> None:
        with self.books.giving_back(given) as latest:
            self._server.nack(latest, delay_s, reason, timeout_s)

    @property
    def version_is_old(self) -> bool:
        """Whether it was last told longer than ``VERSION_AGE_S`` ago; any acknowledgement tells it."""
        return time.monotonic() - self._told > VERSION_AGE_S
