"""Which batches a trainer holds, and what it has done with the others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from .batches import Batch
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    AckTrajectoriesResponse,
    StreamTrajectoriesResponse,
)
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from .limits import VERSION_AGE_S


class Server(Protocol):
    """The calls of one consumer."""

    def ack(self, batch_ids: Sequence[int]) -> AckTrajectoriesResponse: ...

    def nack(self, batch_ids: Sequence[int], delay_s: float, reason: str) -> None: ...


class Books:
    """What is known of each batch, without any call. Thread-safe.

    A batch is given out once, unless it comes for a reason: it was given back meanwhile, or the consumer was sought.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Held: the number of times that it had been given back when it came.
        self._held: dict[int, int] = {}
        #: Given back by this trainer: the same number.
        self._nacked: dict[int, int] = {}
        self._acked: set[int] = set()
        self._seeks = 0

    def sought(self, seeks: int) -> None:
        """The server has told how many times the consumer was sought."""
        with self._lock:
            if seeks > self._seeks:
                self._seeks = seeks
                for known in (self._held, self._nacked, self._acked):
                    known.clear()

    def take(self, message: TrajectoryBatch) -> bool:
        """True for a batch that is to be given out; false when it was already."""
        batch_id, nacks = message.batch_id, message.nack_count
        with self._lock:
            known = self._held.get(batch_id, self._nacked.get(batch_id, -1))
            if batch_id in self._acked or nacks <= known:
                return False
            self._nacked.pop(batch_id, None)
            self._held[batch_id] = nacks
            return True

    def put_back(self, batch_id: int) -> None:
        """It was taken, and nothing could be done with it."""
        with self._lock:
            self._held.pop(batch_id, None)

    def acked(self, batch_ids: Sequence[int], floor: int) -> None:
        with self._lock:
            for one in batch_ids:
                self._held.pop(one, None)
                self._nacked.pop(one, None)
            self._acked.update(batch_ids)
            # Up to the floor the server knows by itself; so the set stays as small as what is out of order.
            self._acked = {one for one in self._acked if one > floor}

    def nacked(self, batch_ids: Sequence[int]) -> None:
        with self._lock:
            for one in batch_ids:
                if one in self._held:
                    self._nacked[one] = self._held.pop(one)


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

    def pop(self) -> TrajectoryBatch | None:
        """The next one that is to be given out; it counts as held."""
        while self._queue:
            message = self._queue.popleft()
            if self._books.take(message):
                return message
        return None

    def put_back(self, message: TrajectoryBatch) -> None:
        """It could not be handed over: it is the next one again."""
        self._books.put_back(message.batch_id)
        self._queue.appendleft(message)


class Ledger:
    """The same, told to the server. Batches know it, not their stream."""

    def __init__(self, server: Server) -> None:
        self.books = Books()
        self._server = server
        #: As the server last told, and when that was.
        self.policy_version = 0
        self._told = float("-inf")

    def ack(self, batches: Sequence[Batch]) -> None:
        self.ack_ids([batch.batch_id for batch in batches])

    def nack(self, batches: Sequence[Batch], delay_s: float, reason: str) -> None:
        self.nack_ids([batch.batch_id for batch in batches], delay_s, reason)

    def ack_ids(self, batch_ids: Sequence[int]) -> None:
        answer = self._server.ack(batch_ids)
        self.books.acked(batch_ids, answer.floor)
        self.policy_version = answer.policy_version
        self._told = time.monotonic()

    def nack_ids(self, batch_ids: Sequence[int], delay_s: float, reason: str) -> None:
        # Before the call: it may come again before the call has returned. One that fails can be repeated.
        self.books.nacked(batch_ids)
        self._server.nack(batch_ids, delay_s, reason)

    def refresh_policy_version(self) -> None:
        """Ask for it where it was last told longer than ``VERSION_AGE_S`` ago."""
        if time.monotonic() - self._told > VERSION_AGE_S:
            self.ack_ids([])
