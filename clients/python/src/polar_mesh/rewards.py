"""From the rewards of a group to what each trained token counts in the loss. Pure functions on numpy arrays.

Notation: a group has S sessions; session s has the reward R_s and K traces, in which T_s tokens are trained together.
Where the evaluator gave a trace a reward of its own (``trace.reward``), that counts for it, else R_s does. NaN is "no
reward": such a session is compared with no other and trains nothing. A whole step::

    for sample in rewards.samples(batches):
        ratio = exp(logprobs_now - sample.logprobs)
        loss -= (sample.weights * sample.advantages * ratio).sum()

Sources: leave-one-out, Kool et al. 2019 (RLOO: arXiv 2402.14740); group mean and standard deviation, GRPO (arXiv
2402.03300); one weight a token, DAPO (arXiv 2503.14476); a constant divisor, Dr. GRPO (arXiv 2503.20783).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .batches import Float32Array, Float64Array, Int64Array, Trace, Trajectory
from .samples import Group, Sample, TraceRewards, groups_of, own_rewards, session_rewards, traces_of, trained_tokens

__all__ = [
    "EPSILON",
    "Estimator",
    "Group",
    "Normalise",
    "Rewards",
    "Sample",
    "TraceRewards",
    "group_norm",
    "leave_one_out",
    "outcome_rewards",
    "rewards_of_traces",
    "samples",
    "token_advantages",
    "trace_advantages",
    "trace_weights",
    "trained_tokens",
]

Estimator = Literal["leave_one_out", "group_norm"]
Normalise = Literal["session", "token", "constant"]
Rewards = Float64Array | Sequence[float | None]

#: Added to the standard deviation, so that differences at the edge of what a float holds are not blown up.
EPSILON = 1e-6


def outcome_rewards(group: Group) -> Float64Array:
    """float64[S]: each session's reward; NaN where there is none, and where no token is trained.

    Args:
        group: A batch, or its trajectories.
    """
    traces, rewards = traces_of(group), session_rewards(group)
    trained = traces.of_sessions(traces.trained) > 0
    return np.where(trained & np.isfinite(rewards), rewards, np.nan)


def rewards_of_traces(trajectory: Trajectory) -> Float64Array:
    """float64[K]: what each trace counts with; NaN where there is none, and where no token of the session is trained."""
    rewards = own_rewards(trajectory)
    return rewards if trained_tokens(trajectory) else np.full_like(rewards, np.nan)


def leave_one_out(rewards: Rewards) -> Float64Array:
    """A_s = R_s - mean of the other sessions' rewards.

    Args:
        rewards: float64[S] of one group, or what becomes that: NaN or None = none.

    Returns:
        float64[S]: NaN where there is no reward; 0 for a session that has no other to be compared with, and for all
        where the rewards are equal.

    Raises:
        ValueError: an array of several groups.
    """
    return _compared(rewards, _others_mean)


def group_norm(rewards: Rewards) -> Float64Array:
    """A_s = (R_s - mean) / (standard deviation + 1e-6), both over the group; the deviation with S - 1 below.

    Arguments, errors, NaN and the cases without a comparison as in ``leave_one_out``.
    """
    return _compared(rewards, _mean_and_deviation)


def trace_advantages(
    rewards: Sequence[Float64Array], estimator: Estimator = "leave_one_out"
) -> list[Float64Array]:
    """Advantages of traces that have rewards of their own.

    A session's reward is the mean over its traces; each trace's reward is compared with the baseline which the
    other sessions give, so that a session is not compared with its own traces:
    A_sk = (r_sk - baseline_s) / scale.

    Args:
        rewards: For each session float64[K]; an empty array, or one with a NaN, is a session without reward.

    Returns:
        For each session float64[K]; all NaN where it has no reward.

    Raises:
        ValueError: another estimator.
    """
    _check_word("estimator", estimator, _BASELINES)
    counts = [len(one) for one in rewards]
    sessions = np.repeat(np.arange(len(counts)), counts)
    flat = np.concatenate([np.empty(0), *rewards])
    advantages = _trace_advantages(flat, sessions, len(counts), estimator)
    ends = np.cumsum(counts, dtype=np.int64)
    return [advantages[end - count : end] for count, end in zip(counts, ends, strict=True)]


def token_advantages(trace: Trace, advantage: float) -> Float32Array:
    """float32[R]: the advantage at each trained token, 0 elsewhere; all 0 for a NaN."""
    return _masked(trace, 0.0 if np.isnan(advantage) else advantage)


def trace_weights(trajectory: Trajectory) -> Float64Array:
    """float64[K]: each trace's share of its session, by trained tokens. Sums up to 1, or is 0 where none is trained.

    However a session's tokens are spread over traces, it counts once.
    """
    counts = np.array([np.count_nonzero(trace.loss_mask) for trace in trajectory.traces], dtype=np.float64)
    return counts / max(counts.sum(), 1)


def samples(
    groups: Iterable[Group],
    *,
    estimator: Estimator = "leave_one_out",
    normalise: Normalise = "session",
    tokens_max: int = 0,
    trace_rewards: TraceRewards | None = None,
) -> list[Sample]:
    """What one optimizer step trains: the traces of these groups that have a trained token and an advantage.

    N counts the sessions that train something, over all groups. The weight of a trained token is

    ==========  ================  ===========================================================
    session     1 / (N T_s)       each session counts the same (GRPO)
    token       1 / sum of T_s    each token counts the same (DAPO)
    constant    1 / (N L)         as token, but not by how many came; L = ``tokens_max`` (Dr. GRPO)
    ==========  ================  ===========================================================

    and none of them depends on over how many traces a session's tokens are spread. Sessions whose advantage is 0 stay
    in N: leaving them out would make the step longer the fewer groups tell something.

    Args:
        groups: Batches, or the trajectories of each. Both layouts give the same; of a batch in columns no trajectory is
            made, unless ``trace_rewards`` asks for it.
        tokens_max: Trained tokens that a session can have; for ``constant``.
        trace_rewards: A reward for each trace of a session, NaN = none; default: what it counts with,
            as ``rewards_of_traces`` has it.

    Raises:
        ValueError: another ``estimator`` or ``normalise``; ``constant`` without ``tokens_max``; not one reward for each
            trace.
        TypeError: one batch or its trajectories in place of a list of them.
    """
    _check_word("estimator", estimator, _BASELINES)
    _check_word("normalise", normalise, get_args(Normalise))
    if normalise == "constant" and tokens_max < 1:
        raise ValueError("normalise='constant' needs tokens_max")
    each = [traces_of(group, trace_rewards) for group in groups_of(groups)]
    advantages = [_trace_advantages(one.rewards, one.sessions, one.session_count, estimator) for one in each]
    # A session takes part with all of its traces, or with none.
    parts = [~np.isnan(one) for one in advantages]
    sessions = sum(len(np.unique(of.sessions[part])) for of, part in zip(each, parts, strict=True))
    total = sum(int(of.trained[part].sum()) for of, part in zip(each, parts, strict=True))
    divisors: dict[str, Callable[[Int64Array], npt.NDArray[Any]]] = {
        "session": lambda tokens: sessions * tokens,
        "token": lambda tokens: np.full_like(tokens, total),
        "constant": lambda tokens: np.full_like(tokens, sessions * tokens_max),
    }
    made: list[Sample] = []
    for of, advantage in zip(each, advantages, strict=True):
        tokens = of.of_sessions(of.trained)[of.sessions]
        made += of.samples(advantage, 1 / np.maximum(divisors[normalise](tokens), 1))
    return made


def _check_word(name: str, word: str, words: Iterable[str]) -> None:
    if word not in words:
        raise ValueError(f"{name} {word!r} is none of {', '.join(words)}")


def _trace_advantages(
    rewards: Float64Array, sessions: npt.NDArray[np.integer[Any]], count: int, estimator: Estimator
) -> Float64Array:
    """float64[N] of the traces of all sessions in order; all NaN of a session that has no reward."""
    baseline, scale = _BASELINES[estimator](_means(rewards, sessions, count))
    return (rewards - baseline[sessions]) / scale


def _means(rewards: Float64Array, sessions: npt.NDArray[np.integer[Any]], count: int) -> Float64Array:
    """float64[S]; NaN for none. Of equal ones it is one of them, however many there are: sessions of equal reward stay so."""
    first = np.full(count, np.nan)
    first[sessions[::-1]] = rewards[::-1]
    differ = np.bincount(sessions, rewards != first[sessions], count) > 0
    traces = np.maximum(np.bincount(sessions, minlength=count), 1)
    return np.where(differ, np.bincount(sessions, rewards, count) / traces, first)


def _masked(trace: Trace, value: float) -> Float32Array:
    return np.where(trace.loss_mask != 0, np.float32(value), np.float32(0))


#: What rewards are compared with, and what the difference is divided by.
Baseline = Callable[[Float64Array], tuple[Float64Array, float]]


def _compared(rewards: Rewards, baseline_of: Baseline) -> Float64Array:
    group = np.asarray(rewards, dtype=np.float64)
    if group.ndim != 1:
        raise ValueError(f"the rewards of one group are [S], not {list(group.shape)}: groups are not compared")
    baseline, scale = baseline_of(group)
    return (group - baseline) / scale


def _others_mean(rewards: Float64Array) -> tuple[Float64Array, float]:
    there = rewards[~np.isnan(rewards)]
    if len(there) < 2:
        return rewards, np.inf
    # Equal ones as they are: no rounding is to turn them into an advantage.
    alike = bool((there == there[0]).all())
    return rewards if alike else (there.sum() - rewards) / (len(there) - 1), 1.0


def _mean_and_deviation(rewards: Float64Array) -> tuple[Float64Array, float]:
    there = rewards[~np.isnan(rewards)]
    if len(there) < 2 or bool((there == there[0]).all()):
        return rewards, np.inf
    return np.where(np.isnan(rewards), np.nan, there.mean()), float(there.std(ddof=1)) + EPSILON


_BASELINES: dict[str, Baseline] = {"leave_one_out": _others_mean, "group_norm": _mean_and_deviation}
