"""Where groups come from: tasks, a queue, or a consumer of the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from ..batches import Batch, Trajectory
from ..errors import DataLoss, DeadlineExceeded, PermissionDenied, PolarError
from ..gen.polar.common.v1.session_pb2 import SESSION_STATE_ENDED

if TYPE_CHECKING:
    from ..client import Client

#: Batches of a consumer that are out until their part is written; also the most groups of a part.
GROUPS_MAX = 500


@dataclass(frozen=True)
class Group:
    """The sessions of a group, read when they are asked for."""

    key: str
    #: Of a consumer's batch; 0 elsewhere.
    batch_id: int
    #: Counts in its argument what cannot be had, by reason. Raises FailedPrecondition where the group is
    #: not in the store.
    read: Callable[[Counter[str]], Sequence[Trajectory]]


class Source(Protocol):
    """Groups in an order that does not change, and what is to be done when they are in a part."""

    #: Known ahead, or None.
    total: int | None
    #: Groups that have not ended; a later export takes them.
    unfinished: int
    #: Groups that have ended and are not in the store.
    absent: int

    def groups(self) -> Iterator[Group]: ...

    def written(self, batch_ids: Sequence[int]) -> None: ...


class TaskSource:
    """All groups of tasks that have ended, in the order of the tasks."""

    def __init__(self, client: Client, task_ids: Sequence[str]) -> None:
        self._groups: list[Group] = []
        self.unfinished = self.absent = 0
        for task_id in dict.fromkeys(task_ids):
            sessions = sorted(client.list_sessions(task_id), key=lambda one: (one.group_id, one.sample_index))
            for group_id, those in groupby(sessions, key=lambda one: one.group_id):
                members = list(those)
                if any(one.state != SESSION_STATE_ENDED for one in members):
                    self.unfinished += 1
                    continue
                ids = [one.session_id for one in members]
                self._groups.append(Group(f"{task_id}/{group_id}", 0, _reader(client, ids)))
        self.total: int | None = len(self._groups)

    def groups(self) -> Iterator[Group]:
        return iter(self._groups)

    def written(self, batch_ids: Sequence[int]) -> None:
        """Nothing: what is in a part is told by the state."""


def _reader(client: Client, session_ids: Sequence[str]) -> Callable[[Counter[str]], Sequence[Trajectory]]:
    def read(dropped: Counter[str]) -> Sequence[Trajectory]:
        found: list[Trajectory] = []
        for session_id in session_ids:
            try:
                found.append(client.get_trajectory(session_id))
            except DataLoss as error:
                if error.retryable:
                    raise
                dropped["lost"] += 1
        return found

    return read


def queue_source(client: Client, queue: str) -> TaskSource:
    """All tasks of a queue, the first one that was submitted in front."""
    tasks = [one for one in client.list_tasks() if (one.spec.queue or "default") == queue]
    tasks.sort(key=lambda one: (one.create_time.seconds, one.create_time.nanos, one.task_id))
    return TaskSource(client, [one.task_id for one in tasks])


class ConsumerSource:
    """What a consumer has not acknowledged; acknowledged when it is in a part. Ends when nothing comes for a while, and the
    mesh has no more."""

    def __init__(self, client: Client, consumer: str, idle_s: float) -> None:
        self._client = client
        self._consumer = consumer
        self._idle_s = idle_s
        #: Batches that came and are not acknowledged.
        self._out: set[int] = set()
        self.total: int | None = None
        self.unfinished = self.absent = 0

    def groups(self) -> Iterator[Group]:
        with self._client.stream(self._consumer, max_unacked=GROUPS_MAX) as stream:
            while True:
                try:
                    batch = stream.next(self._idle_s)
                except DeadlineExceeded as error:
                    if isinstance(error.__cause__, PolarError):
                        # It was not to be had, which is not that there is no more.
                        raise error.__cause__ from None
                    if stream.arriving or self._has_more():
                        continue
                    return
                self._out.add(batch.batch_id)
                yield _of_batch(batch)

    def written(self, batch_ids: Sequence[int]) -> None:
        self._client.ack(self._consumer, batch_ids)
        self._out.difference_update(batch_ids)

    def _has_more(self) -> bool:
        """Whether the mesh is slow, which is not that there is no more. Whoever may not ask goes by the time alone."""
        try:
            consumers = {one.name: one for one in self._client.list_consumers()}
        except PermissionDenied:
            return False
        known = consumers.get(self._consumer)
        # One that is not there yet is made when the stream is open.
        return known is None or known.pending - known.nacked > len(self._out)


def _of_batch(batch: Batch) -> Group:
    return Group(f"{batch.task_id}/{batch.group_id}", batch.batch_id, lambda _: batch.trajectories)
