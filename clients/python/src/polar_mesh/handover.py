"""What becomes of a batch between its receipt and the trainer, without any call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .batches import Batch, BatchLedger, read_batch
from .errors import FailedPrecondition, FieldFault
from .filters import Filter
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch

#: Why a batch that was sent in time is given back.
STALE = "stale at hand-over"


class HandOver:
    """For one stream and one thread."""

    def __init__(self, filter: Filter | None, on_dropped: Callable[[Batch], None] | None) -> None:
        self._filter = filter or Filter()
        self._on_dropped = on_dropped
        #: Groups that the filter dropped, by reason.
        self.dropped: Counter[str] = Counter()
        #: Sessions that the filter dropped from groups, by reason.
        self.dropped_sessions: Counter[str] = Counter()
        #: Groups that were dropped since the last batch that the trainer has got, by what broke a rule.
        self.since: Counter[str] = Counter()

    def check(self, message: TrajectoryBatch) -> None:
        """Raises FailedPrecondition for what the filter drops, and a server that does not know of it has not."""
        prefix = self._filter.task_id_prefix
        if message.dropped_reason or message.task_id.startswith(prefix):
            return
        told = f"the mesh does not know it, as it is older than this client, and sends batches of other tasks: {message.task_id}"
        fault = FieldFault("filter.task_id_prefix", told)
        raise FailedPrecondition("the stream is not filtered", code="FAILED_PRECONDITION", fields=(fault,))

    def asks_version(self, message: TrajectoryBatch) -> bool:
        """Whether the current policy version decides if the trainer gets it."""
        return self._filter.staleness_max is not None and not message.dropped_reason

    def is_stale(self, message: TrajectoryBatch, policy_version: int) -> bool:
        """Whether it has become too old since it was sent; then the server is to judge it anew, and drops it by name."""
        return self._filter.is_stale(message, policy_version)

    def open(self, message: TrajectoryBatch, ledger: BatchLedger) -> Batch:
        """The batch; one that was dropped is told."""
        batch = read_batch(message, ledger)
        if batch.dropped_reason and self._on_dropped is not None:
            self._on_dropped(batch)
        return batch

    def count(self, batch: Batch) -> None:
        """The trainer has it, or its drop is acknowledged."""
        each = [one.dropped_reason for one in batch.trajectories] if batch.columns is None else batch.columns.dropped_reasons
        # Nearly always there are none, and a Counter takes a while to find that out.
        of_sessions = {one for one in each if one}
        if of_sessions:
            self.dropped_sessions.update(filter(None, each))
        if not batch.dropped_reason:
            self.since.clear()
            return
        self.dropped[batch.dropped_reason] += 1
        self.since[" and ".join([batch.dropped_reason, *sorted(of_sessions)])] += 1
