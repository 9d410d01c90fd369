"""What a trainer gets: batches of trajectories, whose columns are numpy views of the received bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import json_format, struct_pb2
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from .errors import DataLoss
from .gen.polar.common.v1 import failure_pb2, session_pb2
from .gen.polar.reconstructor.v1 import trajectory_pb2

Int32Array = npt.NDArray[np.int32]
UInt8Array = npt.NDArray[np.uint8]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

# The columns are little-endian on every machine.
_IDS, _MASK, _LOGPROBS = np.dtype("<i4"), np.dtype("u1"), np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class CallSpan:
    """Where the sampled ids of one model call lie in a trace: ``response_ids[start : start + length]``."""

    call_id: str
    start: int
    length: int
    #: stop, length, tool_calls, cancelled, abort or error.
    finish_reason: str
    #: Version of the weights that sampled it; 0 where the engine tells none.
    policy_version: int
    #: Why ids of it are masked; empty when all are trained.
    masked_reason: str


@dataclass(frozen=True, slots=True, eq=False)
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
    spans: tuple[CallSpan, ...]


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


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One group: all sessions of it that a trainer compares with each other, by sample index."""

    #: Position in the trajectory stream; grows, with gaps.
    batch_id: int
    task_id: str
    group_id: str
    trajectories: tuple[Trajectory, ...]
    #: True when it was sent to this consumer before and not acknowledged.
    redelivered: bool
    #: When the group was complete, in UTC.
    ready_time: datetime
    #: The task's metadata.
    metadata: Mapping[str, Any]
    _ack: Callable[[Sequence[Batch]], None] = field(repr=False)

    @property
    def rewards(self) -> Float64Array:
        """float64[S], one for each trajectory; NaN where there is no reward."""
        return np.array([np.nan if one.reward is None else one.reward for one in self.trajectories])

    def ack(self) -> None:
        """Record durably that the batch need not come again; returns when that is so. Safe to repeat."""
        self._ack([self])


def read_batch(message: trajectory_pb2.TrajectoryBatch, ack: Callable[[Sequence[Batch]], None]) -> Batch:
    """The batch of a message; its arrays outlive the message. Raises DataLoss for columns that do not fit."""
    return Batch(
        batch_id=message.batch_id,
        task_id=message.task_id,
        group_id=message.group_id,
        trajectories=tuple(read_trajectory(one) for one in message.trajectories),
        redelivered=message.redelivered,
        ready_time=message.ready_time.ToDatetime(timezone.utc),
        metadata=_struct(message.metadata),
        _ack=ack,
    )


def read_trajectory(message: trajectory_pb2.Trajectory) -> Trajectory:
    """The trajectory of a message. Raises DataLoss for columns that do not fit together."""
    return Trajectory(
        session_id=message.session_id,
        task_id=message.task_id,
        group_id=message.group_id,
        sample_index=message.sample_index,
        attempt=message.attempt,
        outcome=_name(session_pb2.Outcome, message.outcome, "OUTCOME_"),
        failure=_failure(message.failure) if message.HasField("failure") else None,
        reward=message.reward if message.HasField("reward") else None,
        traces=tuple(_trace(one, message.session_id) for one in message.traces),
        stats=_stats(message.stats),
        builder=message.builder,
        policy_version_min=message.policy_version_min,
        policy_version_max=message.policy_version_max,
        drift=tuple(
            Drift(
                call_id=one.call_id,
                kind=_name(trajectory_pb2.DriftKind, one.kind, "DRIFT_KIND_"),
                first_difference=one.first_difference,
            )
            for one in message.drift
        ),
        evaluation=_struct(message.evaluation),
    )


def _trace(message: trajectory_pb2.Trace, session_id: str) -> Trace:
    try:
        # Each access of a bytes field copies it: once here, and the arrays are views of that copy.
        prompt_ids = np.frombuffer(message.prompt_ids, _IDS)
        response_ids = np.frombuffer(message.response_ids, _IDS)
        loss_mask = np.frombuffer(message.loss_mask, _MASK)
        logprobs = np.frombuffer(message.logprobs, _LOGPROBS)
    except ValueError as error:
        raise _damaged(session_id, str(error)) from error
    if not len(response_ids) == len(loss_mask) == len(logprobs):
        lengths = f"{len(response_ids)} ids, {len(loss_mask)} mask values, {len(logprobs)} logprobs"
        raise _damaged(session_id, lengths)
    spans = tuple(
        CallSpan(
            call_id=one.call_id,
            start=one.start,
            length=one.length,
            finish_reason=one.finish_reason,
            policy_version=one.policy_version,
            masked_reason=one.masked_reason,
        )
        for one in message.spans
    )
    return Trace(prompt_ids, response_ids, loss_mask, logprobs, spans)


def _damaged(session_id: str, what: str) -> DataLoss:
    return DataLoss(f"a trace of session {session_id} has columns that do not fit: {what}", code="DATA_LOSS")


def _failure(message: failure_pb2.Failure) -> Failure:
    boundary = _name(failure_pb2.Boundary, message.boundary, "BOUNDARY_")
    return Failure(boundary, message.reason, message.message, message.infrastructure)


def _stats(message: session_pb2.SessionStats) -> Stats:
    return Stats(
        calls=message.calls,
        traces=message.traces,
        trained_tokens=message.trained_tokens,
        masked_tokens=dict(message.masked_tokens),
        sampled_tokens=message.sampled_tokens,
        context_tokens=message.context_tokens,
    )


def _struct(message: struct_pb2.Struct) -> Mapping[str, Any]:
    return json_format.MessageToDict(message)


def _name(enum: EnumTypeWrapper, value: int, prefix: str) -> str:
    """The value's name in lower case; a value that this version does not know as its number."""
    try:
        return enum.Name(value).removeprefix(prefix).lower()
    except ValueError:
        return str(value)
