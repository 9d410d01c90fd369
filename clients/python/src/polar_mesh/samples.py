"""Traces with what their ids count, of groups in either layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .batches import Batch, Float32Array, Float64Array, Int32Array, Int64Array, Trace, Trajectory, UInt8Array
from .columns import Columns

#: The sessions that a trainer compares with each other.
Group = Batch | Sequence[Trajectory]
TraceRewards = Callable[[Trajectory], Sequence[float] | Float64Array]
#: The arrays of a sample.
Counted = tuple[Int32Array, Int32Array, UInt8Array, Float32Array, Float32Array, Float32Array]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    """One trace with what its ids count: its columns, and two beside them that are 0 where ``loss_mask`` is 0.

    Of a batch in columns the first four are views of them; ``trajectory`` and ``trace`` are made when they are asked for.
    """

    #: int32[P].
    prompt_ids: Int32Array
    #: int32[R].
    response_ids: Int32Array
    #: uint8[R].
    loss_mask: UInt8Array
    #: float32[R].
    logprobs: Float32Array
    #: float32[R].
    advantages: Float32Array
    #: float32[R], at least 0; over all traces of a session they sum up to what the session counts.
    weights: Float32Array
    _trajectories: Sequence[Trajectory]
    #: Index of its trajectory, and of the trace in that.
    _place: tuple[int, int]

    @property
    def trajectory(self) -> Trajectory:
        return self._trajectories[self._place[0]]

    @property
    def trace(self) -> Trace:
        return self.trajectory.traces[self._place[1]]

    @property
    def length(self) -> int:
        """P + R."""
        return len(self.prompt_ids) + len(self.response_ids)

    def __repr__(self) -> str:
        shapes = f"prompt_ids=int32[{len(self.prompt_ids)}], response_ids=int32[{len(self.response_ids)}]"
        return f"Sample({shapes}, trained={np.count_nonzero(self.loss_mask)})"

    def __reduce__(self) -> tuple[type[Sample], tuple[Any, ...]]:
        # With its own trajectory, not with its whole group.
        columns = (self.prompt_ids, self.response_ids, self.loss_mask, self.logprobs, self.advantages, self.weights)
        return Sample, (*columns, (self.trajectory,), (0, self._place[1]))


@dataclass(frozen=True, slots=True, eq=False)
class GroupTraces:
    """What a step has to know of the N traces of a group of S sessions."""

    session_count: int
    #: int[N]: index of its session.
    sessions: npt.NDArray[np.integer[Any]]
    #: int64[N]: ids with ``loss_mask`` 1.
    trained: Int64Array
    #: float64[N]: what each counts with; NaN for all of a session that trains nothing, or has one that is not finite.
    rewards: Float64Array
    _group: Group

    def of_sessions(self, values: npt.NDArray[Any]) -> Int64Array:
        """int64[S]: the sums of whole numbers [N]."""
        return _sums(values, self.sessions, self.session_count)

    def samples(self, advantages: Float64Array, weights: Float64Array) -> Iterator[Sample]:
        """The traces with a trained id and an advantage: float64[N], NaN = none; ``weights``, float64[N], are each id's."""
        kept = ~np.isnan(advantages) & (self.trained > 0)
        counted = [np.where(kept, each, 0).astype(np.float32) for each in (advantages, weights)]
        columns, trajectories = _columns(self._group, *counted), trajectories_of(self._group)
        at = np.flatnonzero(kept)
        of = self.sessions[at]
        places = zip(of.tolist(), (at - np.searchsorted(self.sessions, of)).tolist(), strict=True)
        for index, place in zip(at.tolist(), places, strict=True):
            yield Sample(*columns(index), trajectories, place)


def traces_of(group: Group, trace_rewards: TraceRewards | None = None) -> GroupTraces:
    """Raises ValueError where ``trace_rewards`` gives a session not one reward for each of its traces."""
    if isinstance(group, Batch) and group.columns is not None and trace_rewards is None:
        whole = group.columns
        count, sessions = whole.trajectory_count, whole.trajectory_indexes
        trained, rewards = _trained(whole), whole.rewards
    else:
        each = trajectories_of(group)
        count, sessions = len(each), np.repeat(np.arange(len(each)), [len(one.traces) for one in each])
        trained = np.array([np.count_nonzero(trace.loss_mask) for one in each for trace in one.traces], np.int64)
        rewards = np.concatenate([np.empty(0), *(_rewards(one, trace_rewards or own_rewards) for one in each)])
    without = ~np.isfinite(rewards) | (_sums(trained, sessions, count) == 0)[sessions]
    left_out = _sums(without, sessions, count) > 0
    return GroupTraces(count, sessions, trained, np.where(left_out[sessions], np.nan, rewards), group)


def groups_of(given: Iterable[Group]) -> list[Group]:
    """Raises TypeError where one group was given in place of several."""
    if isinstance(given, Batch):
        raise TypeError("one Batch is one group, and several are needed: [batch]")
    groups = list(given)
    if any(isinstance(one, Trajectory) for one in groups):
        raise TypeError("the trajectories of one batch are one group, and several are needed: [batch.trajectories], or [batch]")
    return groups


def trajectories_of(group: Group) -> Sequence[Trajectory]:
    return group.trajectories if isinstance(group, Batch) else group


def _columns(group: Group, advantages: Float32Array, weights: Float32Array) -> Callable[[int], Counted]:
    """The columns of a trace by its index in the group, with what its ids count."""
    if isinstance(group, Batch) and group.columns is not None:
        return _views(group.columns, advantages, weights)
    traces = [trace for one in trajectories_of(group) for trace in one.traces]

    def columns(at: int) -> Counted:
        one, trained = traces[at], traces[at].loss_mask != 0
        counts = trained * advantages[at : at + 1], trained * weights[at : at + 1]
        return one.prompt_ids, one.response_ids, one.loss_mask, one.logprobs, *counts

    return columns


def _views(columns: Columns, advantages: Float32Array, weights: Float32Array) -> Callable[[int], Counted]:
    trained, lengths = columns.loss_mask != 0, columns.response_lengths
    of_responses = (
        *(columns.response_ids, columns.loss_mask, columns.logprobs),
        *(trained * np.repeat(counts, lengths) for counts in (advantages, weights)),
    )
    prompt_ids, prompts, responses = columns.prompt_ids, columns.prompt_offsets.tolist(), columns.response_offsets.tolist()

    def views(at: int) -> Counted:
        response = slice(responses[at], responses[at + 1])
        return prompt_ids[prompts[at] : prompts[at + 1]], *[column[response] for column in of_responses]

    return views


def _trained(columns: Columns) -> Int64Array:
    """int64[N]: ids with ``loss_mask`` 1."""
    counts = np.zeros(columns.trace_count, np.int64)
    # Where a sum is of nothing, reduceat has the next value.
    some = columns.response_lengths > 0
    if some.any():
        counts[some] = np.add.reduceat(columns.loss_mask != 0, columns.response_offsets[:-1][some], dtype=np.int64)
    return counts


def own_rewards(trajectory: Trajectory) -> Float64Array:
    """float64[K]: what each trace counts with, NaN = none."""
    each = map(trajectory.reward_of, trajectory.traces)
    return np.array([np.nan if one is None else one for one in each], dtype=np.float64)


def session_rewards(group: Group) -> Float64Array:
    """float64[S], NaN = none."""
    if isinstance(group, Batch):
        return group.rewards
    return np.array([np.nan if one.reward is None else one.reward for one in group], dtype=np.float64)


def trained_tokens(trajectory: Trajectory) -> int:
    """T_s: tokens with ``loss_mask`` 1 over all traces of the session."""
    return sum(int(np.count_nonzero(trace.loss_mask)) for trace in trajectory.traces)


def _rewards(trajectory: Trajectory, trace_rewards: TraceRewards) -> Float64Array:
    if not trained_tokens(trajectory):
        return np.full(len(trajectory.traces), np.nan)
    rewards = np.asarray(trace_rewards(trajectory), dtype=np.float64)
    if rewards.shape != (len(trajectory.traces),):
        raise ValueError(
            f"session {trajectory.session_id} has {len(trajectory.traces)} traces and {rewards.size} rewards"
        )
    return rewards


def _sums(values: npt.NDArray[Any], indexes: npt.NDArray[Any], count: int) -> Int64Array:
    """int64[count]: sums of whole numbers by index."""
    return np.bincount(indexes, values, count).astype(np.int64)
