"""What a trainer gets: batches of trajectories, whose columns are numpy views of the received bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.timestamp_pb2 import Timestamp

from .columns import IDS, LOGPROBS, MASK, Columns, MadeLate, read_columns
from .errors import DataLoss
from .experts import RoutedExperts, read_experts
from .free_form import read_struct
from .gen.polar.common.v1 import failure_pb2, session_pb2
from .gen.polar.reconstructor.v1 import trajectory_pb2
from .images import Image, read_image
from .spans import CallSpan, Spans
from .wire import ColumnTrajectory, Cut, WireBatch, WireTrace, read_details

Int32Array = npt.NDArray[np.int32]
UInt8Array = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """One training sequence: ``prompt_ids`` followed by ``response_ids``. The arrays are read-only views.

    Shapes: ``prompt_ids`` int32[P]; ``response_ids`` int32[R]; ``loss_mask`` uint8[R], 1 = sampled by the policy and
    trained, 0 = context or masked; ``logprobs`` float32[R], natural logarithm, under the engine where ``loss_mask``
    is 1, else 0.
    """

    prompt_ids: Int32Array
    response_ids: Int32Array
    loss_mask: UInt8Array
    logprobs: Float32Array
    #: The model calls in it, in order.
    spans: Sequence[CallSpan]
    #: Which experts its ids were routed to; None where nothing is known of that.
    routed_experts: RoutedExperts | None = None
    #: Images of its conversation, in order.
    images: tuple[Image, ...] = ()
    #: Its own reward, where the evaluator gave it one; None: it counts with its session's (``Trajectory.reward_of``).
    reward: float | None = None

    def __repr__(self) -> str:
        shapes = f"prompt_ids=int32[{len(self.prompt_ids)}], response_ids=int32[{len(self.response_ids)}]"
        trained = np.count_nonzero(self.loss_mask)
        return f"Trace({shapes}, trained={trained}, calls={len(self.spans)}, reward={self.reward})"

    @property
    def policy_versions(self) -> Int64Array:
        """int64[R]: version of the weights that sampled each id; 0 where the engine tells none, -1 for context."""
        versions = np.full(len(self.response_ids), -1, np.int64)
        for span in self.spans:
            versions[span.start : span.start + span.length] = span.policy_version
            for run in span.policy_runs:
                versions[run.start : run.start + run.length] = run.policy_version
        return versions


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a session has no trajectory, or an imperfect one."""

    #: provider, harness, sandbox, proxy, task, evaluator or mesh.
    boundary: str
    reason: str
    message: str
    #: True: lost to infrastructure; such a session never has a reward.
    infrastructure: bool


@dataclass(frozen=True, slots=True)
class Drift:
    """One place where a call's prompt differs from what its conversation was served and sampled before."""

    call_id: str
    #: retokenised (same messages, other ids) or rewritten (other messages).
    kind: str
    #: Index into the call's prompt of the first id that differs.
    first_difference: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a session; ``sampled_tokens`` = ``trained_tokens`` + the sum of ``masked_tokens`` (by reason)."""

    calls: int
    traces: int
    trained_tokens: int
    masked_tokens: Mapping[str, int]
    sampled_tokens: int
    context_tokens: int
    #: Calls whose engine was asked for its routed experts and whose traces lack them, by reason.
    experts_dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectory:
    """All traces of one session, with how it ended."""

    session_id: str
    task_id: str
    group_id: str
    #: 0 to num_samples - 1.
    sample_index: int
    #: The attempt that counts, from 1.
    attempt: int
    #: completed, timeout, harness_error, infrastructure_error, cancelled or task_error.
    outcome: str
    failure: Failure | None
    #: None where there is none; always None after an infrastructure failure.
    reward: float | None
    #: By start of their first call; may be empty.
    traces: tuple[Trace, ...]
    stats: Stats
    #: Builder that made the traces.
    builder: str
    #: Smallest and largest policy version of its calls; 0 where the engine tells none.
    policy_version_min: int
    policy_version_max: int
    drift: tuple[Drift, ...]
    #: What the evaluator told beside the reward.
    evaluation: Mapping[str, Any]
    #: Rule for sessions of the stream's filter that it breaks: its traces are left out. Empty: none.
    dropped_reason: str = ""
    #: Configuration of the builder as the task gave it; empty: all defaults.
    builder_config: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        failure = f", failure={self.failure.reason}" if self.failure else ""
        counts = f"traces={len(self.traces)}, trained_tokens={self.stats.trained_tokens}"
        return f"Trajectory({self.session_id}, {self.outcome}{failure}, reward={self.reward}, {counts})"

    def reward_of(self, trace: Trace) -> float | None:
        """What a trace of it counts with: its own reward, else the session's; None where there is none."""
        return self.reward if trace.reward is None else trace.reward


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """One group: all sessions of it that a trainer compares with each other, by sample index.

    It can be pickled, for a worker process, say. What is read from that is acknowledged by a stream of its consumer:
    ``stream.ack([batch])``.
    """

    #: Position in the trajectory stream; grows, with gaps.
    batch_id: int
    task_id: str
    group_id: str
    #: Of a stream with ``layout="columns"`` they are made when they are asked for, on the memory of ``columns``.
    trajectories: Sequence[Trajectory]
    #: True when it may have been sent to this consumer before: it was not acknowledged, or a seek went back behind it.
    redelivered: bool
    #: When the group was complete, in UTC.
    ready_time: datetime
    #: The task's metadata. Numbers that are whole are int here, and wherever JSON values come back: 3.0 is 3.
    metadata: Mapping[str, Any]
    #: The policy version that was current when it was sent.
    policy_version: int
    #: It was sent for the n-th time to this consumer, from 1.
    delivery_count: int
    #: Rule for groups of the stream's filter that it breaks: it has no traces. Empty: it is whole.
    dropped_reason: str
    #: How many times this consumer has given it back, and what it said last.
    nack_count: int
    nack_reason: str
    _ledger: BatchLedger
    #: Sessions of the task that had not ended when the group was complete: stragglers, which come with a later group of it.
    carried_over_sessions: int = 0
    #: All traces, each column one array; of a stream with ``layout="columns"`` only.
    columns: Columns | None = None

    def __repr__(self) -> str:
        marks = f"policy_version={self.policy_version}, delivery_count={self.delivery_count}"
        dropped = f", dropped_reason={self.dropped_reason}" if self.dropped_reason else ""
        rewards = [None if np.isnan(one) else one for one in self.rewards.tolist()]
        group = f"{self.batch_id}, task {self.task_id}, group {self.group_id}"
        return f"Batch({group}, rewards={rewards}, {marks}{dropped})"

    @property
    def rewards(self) -> Float64Array:
        """float64[S], one for each trajectory; NaN where there is no reward."""
        if self.columns is not None:
            return self.columns.trajectory_rewards
        return np.array([np.nan if one.reward is None else one.reward for one in self.trajectories])

    @property
    def staleness(self) -> int:
        """Policy versions that its oldest trained call was behind when it was sent; 0 where it has no traces."""
        if self.columns is not None:
            oldest = self.columns.policy_versions_min[self.columns.trajectory_indexes].tolist()
        else:
            oldest = [one.policy_version_min for one in self.trajectories if one.traces]
        return max(0, self.policy_version - min(oldest)) if oldest else 0

    def ack(self) -> bool:
        """Record durably that the batch need not come again; returns when that is so. Safe to repeat.

        False: it came before a seek of the consumer, which counts for more. Nothing is recorded, and the batch comes again
        where it lies behind the place that was sought.

        A batch of ``polar_mesh.aio`` is acknowledged by its stream: ``await stream.ack([batch])``.
        """
        return not self._ledger.ack([self])

    def nack(self, delay_s: float = 0.0, reason: str = "") -> None:
        """Give the batch back: it comes again after ``delay_s`` seconds, at most a day. Returns when that is durable.

        A batch of ``polar_mesh.aio`` is given back by its stream: ``await stream.nack([batch])``.
        """
        self._ledger.nack([self], delay_s, reason)


class BatchLedger(Protocol):
    """Where batches are acknowledged and given back."""

    def ack(self, batches: Sequence[Batch]) -> list[Batch]: ...

    def nack(self, batches: Sequence[Batch], delay_s: float, reason: str) -> None: ...


def read_batch(message: trajectory_pb2.TrajectoryBatch, ledger: BatchLedger) -> Batch:
    """The batch of a message; its arrays outlive the message. Raises DataLoss for columns that do not fit."""
    columns: Columns | None = None
    trajectories: Sequence[Trajectory]
    if isinstance(message, WireBatch) and message.columns is not None:
        columns = read_columns(message.columns, message.dropped_reasons)
        trajectories = MadeLate(partial(_of_columns, message.details, columns))
        # Each is asked for once: the fields of what was cut are its head's.
        message = message.head
    else:
        trajectories = tuple(read_trajectory(one) for one in message.trajectories)
    return Batch(
        batch_id=message.batch_id,
        task_id=message.task_id,
        group_id=message.group_id,
        trajectories=trajectories,
        redelivered=message.redelivered,
        ready_time=_time(message.ready_time),
        metadata=read_struct(message.metadata) if message.HasField("metadata") else {},
        policy_version=message.policy_version,
        delivery_count=message.delivery_count,
        dropped_reason=message.dropped_reason,
        nack_count=message.nack_count,
        nack_reason=message.nack_reason,
        _ledger=ledger,
        carried_over_sessions=message.carried_over_sessions,
        columns=columns,
    )


def _time(message: Timestamp) -> datetime:
    # Protobuf's own way is ten times slower.
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


_EPOCH = datetime.fromtimestamp(0, timezone.utc)


def _of_columns(details: bytes, columns: Columns) -> tuple[Trajectory, ...]:
    """The trajectories of a batch; the columns of their traces are parts of its own."""
    of_prompts, of_responses = columns.prompt_offsets.tolist(), columns.response_offsets.tolist()
    prompt_ids, response_ids = columns.prompt_ids, columns.response_ids
    loss_mask, logprobs = columns.loss_mask, columns.logprobs
    made: list[Trajectory] = []
    at = 0
    for head in read_details(details):
        traces: list[WireTrace] = []
        for trace in head.traces:
            prompt = slice(of_prompts[at], of_prompts[at + 1])
            response = slice(of_responses[at], of_responses[at + 1])
            at += 1
            parts = {
                "prompt_ids": prompt_ids[prompt],
                "response_ids": response_ids[response],
                "loss_mask": loss_mask[response],
                "logprobs": logprobs[response],
            }
            traces.append(WireTrace(trace, parts))
        made.append(read_trajectory(ColumnTrajectory(head, traces)))  # type: ignore[arg-type]
    return tuple(made)


def read_trajectory(message: trajectory_pb2.Trajectory) -> Trajectory:
    """The trajectory of a message. Raises DataLoss for columns that do not fit together."""
    # Of one that was cut, all but the traces; asked for once.
    head = message.head if isinstance(message, Cut) else message
    reward = head.reward if head.HasField("reward") else None
    session_id = head.session_id
    return Trajectory(
        session_id=session_id,
        task_id=head.task_id,
        group_id=head.group_id,
        sample_index=head.sample_index,
        attempt=head.attempt,
        outcome=_OUTCOMES.get(head.outcome) or str(head.outcome),
        failure=_failure(head.failure) if head.HasField("failure") else None,
        reward=reward,
        traces=tuple([_trace(one, session_id) for one in message.traces]),
        stats=_stats(head.stats) if head.HasField("stats") else _NO_STATS,
        builder=head.builder,
        policy_version_min=head.policy_version_min,
        policy_version_max=head.policy_version_max,
        drift=tuple(map(_drift, head.drift)) if head.drift else (),
        evaluation=read_struct(head.evaluation) if head.HasField("evaluation") else {},
        dropped_reason=head.dropped_reason,
        builder_config=read_struct(head.builder_config) if head.HasField("builder_config") else {},
    )


def _trace(message: trajectory_pb2.Trace, session_id: str) -> Trace:
    try:
        # Each access of a bytes field of a message copies it: once here, and the arrays are views of that copy.
        prompt_ids = np.frombuffer(message.prompt_ids, IDS)
        response_ids = np.frombuffer(message.response_ids, IDS)
        loss_mask = np.frombuffer(message.loss_mask, MASK)
        logprobs = np.frombuffer(message.logprobs, LOGPROBS)
        experts = None
        if message.HasField("routed_experts"):
            experts = read_experts(message.routed_experts, len(prompt_ids) + len(response_ids))
    except ValueError as error:
        raise _damaged(session_id, str(error)) from error
    if not len(response_ids) == len(loss_mask) == len(logprobs):
        lengths = f"{len(response_ids)} ids, {len(loss_mask)} mask values, {len(logprobs)} logprobs"
        raise _damaged(session_id, lengths)
    head = message.head if isinstance(message, Cut) else message
    reward = head.reward if head.HasField("reward") else None
    images = tuple(map(read_image, head.images)) if head.images else ()
    return Trace(prompt_ids, response_ids, loss_mask, logprobs, Spans(head.spans), experts, images, reward)


def _drift(message: trajectory_pb2.Drift) -> Drift:
    kind = _DRIFT_KINDS.get(message.kind) or str(message.kind)
    return Drift(message.call_id, kind, message.first_difference)


def _damaged(session_id: str, what: str) -> DataLoss:
    return DataLoss(f"a trace of session {session_id} has columns that do not fit: {what}", code="DATA_LOSS")


def _failure(message: failure_pb2.Failure) -> Failure:
    boundary = _BOUNDARIES.get(message.boundary) or str(message.boundary)
    return Failure(boundary, message.reason, message.message, message.infrastructure)


def _stats(message: session_pb2.SessionStats) -> Stats:
    return Stats(
        calls=message.calls,
        traces=message.traces,
        trained_tokens=message.trained_tokens,
        masked_tokens=_counts(message.masked_tokens),
        sampled_tokens=message.sampled_tokens,
        context_tokens=message.context_tokens,
        experts_dropped=_counts(message.experts_dropped),
    )


def _counts(message: Mapping[str, int]) -> dict[str, int]:
    # A map of protobuf is slow to copy, and most are empty.
    return dict(message) if message else {}


_NO_STATS = _stats(session_pb2.SessionStats())


def _names(enum: EnumTypeWrapper, prefix: str) -> dict[int, str]:
    """By value, in lower case. A value that this version does not know is told as its number."""
    return {value: name.removeprefix(prefix).lower() for name, value in enum.items()}


_OUTCOMES = _names(session_pb2.Outcome, "OUTCOME_")
_DRIFT_KINDS = _names(trajectory_pb2.DriftKind, "DRIFT_KIND_")
_BOUNDARIES = _names(failure_pb2.Boundary, "BOUNDARY_")
