"""What a trainer does not want from its stream."""

from __future__ import annotations

from dataclasses import dataclass

from .arguments import message_of
from .columns import read_columns
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamFilter
from .gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from .wire import WireBatch


@dataclass(frozen=True)
class Filter:
    """Rules that the server judges each time it sends a batch; what breaks one is dropped under that rule's name.

    A session that breaks a rule for sessions (``staleness_max``, ``policy_span_max``) keeps its place in the batch, with
    outcome, reward and stats, without traces and with ``dropped_reason``. A group that breaks one of the others, which
    see what is left, is dropped as a whole, and so is one of another task, whatever else it breaks.
    """

    #: Most policy versions that a trajectory's oldest trained call may be behind the current one: ``stale``.
    staleness_max: int | None = None
    #: Most policy versions between the oldest and the newest trained call of a trajectory: ``policy_span``.
    policy_span_max: int | None = None
    #: Least part of a group's sessions that have a reward and traces, 0 to 1: ``usable_fraction``.
    usable_fraction_min: float = 0.0
    #: Drop groups of which usable sessions and their traces have no different rewards: ``zero_variance``.
    drop_zero_variance: bool = False
    #: Most token ids in all traces of a group, 0 for no limit: ``group_tokens``.
    group_tokens_max: int = 0
    #: Only groups of tasks whose id begins so: ``other_task``. Where an older mesh, which does not know it, sends another one, that
    #: is not handed over: the wait for it raises ``FailedPrecondition``.
    task_id_prefix: str = ""

    def message(self) -> StreamFilter:
        """The form that the server takes."""
        return message_of(
            StreamFilter,
            staleness_max=self.staleness_max,
            policy_span_max=self.policy_span_max,
            usable_fraction_min=self.usable_fraction_min,
            drop_zero_variance=self.drop_zero_variance,
            group_tokens_max=self.group_tokens_max,
            task_id_prefix=self.task_id_prefix,
        )

    def is_stale(self, batch: TrajectoryBatch, policy_version: int) -> bool:
        """Whether a trajectory of it has become too old since it was sent."""
        if self.staleness_max is None or policy_version == batch.policy_version:
            return False
        oldest = policy_version - self.staleness_max
        if isinstance(batch, WireBatch) and batch.columns is not None:
            columns = read_columns(batch.columns, ())
            return bool((columns.policy_versions_min[columns.trajectory_indexes] < oldest).any())
        return any(one.policy_version_min < oldest for one in batch.trajectories if one.traces)
