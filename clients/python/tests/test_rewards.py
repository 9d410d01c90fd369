"""Advantages and weights, on cases worked out by hand and on random groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from support import trace, trajectory

from polar_mesh import Trajectory, arrays, rewards
from polar_mesh.batches import read_batch, read_trajectory
from polar_mesh.gen.polar.reconstructor.v1 import trajectory_pb2 as pb

nan = np.nan
ESTIMATORS = {"leave_one_out": rewards.leave_one_out, "group_norm": rewards.group_norm}


def of(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def session(reward: float | None, *masks: Sequence[int]) -> Trajectory:
    """A session with one trace for each mask."""
    return trajectory(reward, [trace(mask) for mask in masks])


def random_group(random: np.random.Generator) -> list[Trajectory]:
    def mask() -> np.ndarray:
        return random.integers(0, 2, random.integers(0, 9))

    values = [None if random.random() < 0.2 else float(random.normal()) for _ in range(random.integers(1, 9))]
    return [session(value, *(mask() for _ in range(random.integers(0, 4)))) for value in values]


def test_leave_one_out_compares_with_the_mean_of_the_others():
    np.testing.assert_allclose(rewards.leave_one_out(of(1, 0, 0.5)), [0.75, -0.75, 0])
    np.testing.assert_allclose(rewards.leave_one_out(of(1, nan, 0, 0.5)), [0.75, nan, -0.75, 0])


def test_group_norm_divides_by_the_sample_deviation():
    expected = of(1, 0, -1) / (1 + rewards.EPSILON)
    np.testing.assert_allclose(rewards.group_norm(of(3, 2, 1)), expected)
    np.testing.assert_allclose(rewards.group_norm(of(3, nan, 2, 1)), [expected[0], nan, *expected[1:]])
    np.testing.assert_allclose(rewards.group_norm(of(1, 0)), [0.5**0.5, -(0.5**0.5)], rtol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_rewards_come_as_lists_too_and_of_one_group_at_a_time(estimator):
    np.testing.assert_array_equal(estimator([1, None, 0]), estimator(of(1, nan, 0)))
    np.testing.assert_array_equal(estimator(np.array([1, 0, 1])), estimator(of(1, 0, 1)))
    assert estimator(np.array([1, 0], np.float32)).dtype == np.float64
    with pytest.raises(ValueError, match=r"of one group are \[S\], not \[2, 3\]"):
        estimator(np.ones((2, 3)))


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_without_a_comparison_there_is_no_advantage(estimator):
    np.testing.assert_array_equal(estimator(of(1, nan)), [0, nan])
    np.testing.assert_array_equal(estimator(of(nan, nan)), [nan, nan])
    np.testing.assert_array_equal(estimator(of()), [])
    # 0.1 + 0.1 + 0.1 is not 0.3.
    np.testing.assert_array_equal(estimator(of(0.1, nan, 0.1, 0.1)), [0, nan, 0, 0])


def test_a_trace_is_compared_with_other_sessions_only():
    # The cases of the reference system's own tests.
    first, second = rewards.trace_advantages([of(2, 4), of(10)])
    np.testing.assert_allclose(first, [-8, -6])
    np.testing.assert_allclose(second, [7])
    np.testing.assert_array_equal(
        np.concatenate(rewards.trace_advantages([of(2), of(nan), of(6)])), [-4, nan, 4]
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_rewards_have_no_advantage_however_often_their_sessions_forked(estimator):
    group = [session(0.1, *[[1]] * traces) for traces in (1, 3, 6)]
    trained = rewards.samples([group], estimator=estimator)
    assert [float(one.advantages[0]) for one in trained] == [0] * 10


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_session_without_traces_or_with_half_its_rewards_takes_no_part(estimator):
    lone, half, none = rewards.trace_advantages([of(2, 4), of(1, nan), of()], estimator)
    np.testing.assert_array_equal(lone, [0, 0])
    np.testing.assert_array_equal(half, [nan, nan])
    assert none.shape == (0,)
    assert rewards.trace_advantages([], estimator) == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_on_random_groups(name):
    estimator, random = ESTIMATORS[name], np.random.default_rng(7)
    for _ in range(200):
        values = random.normal(size=random.integers(2, 12))
        values[random.random(len(values)) < 0.2] = nan
        there = ~np.isnan(values)
        advantages = estimator(values)
        np.testing.assert_array_equal(np.isnan(advantages), ~there)
        assert abs(np.nansum(advantages)) < 1e-9
        np.testing.assert_allclose(estimator(values + 3), advantages, atol=1e-5, err_msg="shifted")
        order = random.permutation(len(values))
        np.testing.assert_allclose(estimator(values[order]), advantages[order], atol=1e-9, err_msg="another order")
        np.testing.assert_allclose(estimator(values[there]), advantages[there], atol=1e-9, err_msg="without NaN")
        alike = rewards.trace_advantages([np.full(2, one) for one in values], name)
        np.testing.assert_allclose(alike, np.stack([advantages, advantages], axis=1), atol=1e-9)


def test_a_reward_of_a_session_in_which_nothing_is_trained_is_none():
    group = [session(1, [1]), session(1, [0, 0]), session(1), session(None, [1]), session(np.inf, [1])]
    np.testing.assert_array_equal(rewards.outcome_rewards(group), [1, nan, nan, nan, nan])


def test_token_advantages_are_there_where_tokens_are_trained():
    one = trace([0, 1, 1, 0])
    advantages = rewards.token_advantages(one, -0.5)
    assert advantages.dtype == np.float32
    np.testing.assert_array_equal(advantages, [0, -0.5, -0.5, 0])
    np.testing.assert_array_equal(rewards.token_advantages(one, nan), np.zeros(4))


def test_trace_weights_are_shares_of_the_session():
    np.testing.assert_allclose(rewards.trace_weights(session(1, [1, 1, 1, 0], [0], [1])), [0.75, 0, 0.25])
    np.testing.assert_array_equal(rewards.trace_weights(session(1, [0])), [0])
    assert rewards.trace_weights(session(1)).shape == (0,)


def test_samples_by_hand():
    group = [session(1, [1, 1, 0], [1, 1]), session(0, [0, 1]), session(None, [1]), session(1, [0])]
    first, second, third = rewards.samples([group])
    assert [first.trajectory, second.trajectory, third.trajectory] == [group[0], group[0], group[1]]
    np.testing.assert_array_equal(first.advantages, [1, 1, 0])
    np.testing.assert_array_equal(third.advantages, [0, -1])
    np.testing.assert_allclose(first.weights, [0.125, 0.125, 0])
    np.testing.assert_allclose(second.weights, [0.125, 0.125])
    np.testing.assert_allclose(third.weights, [0, 0.5])
    by_token = rewards.samples([group], normalise="token")
    np.testing.assert_allclose([one.weights.max() for one in by_token], 0.2)
    by_constant = rewards.samples([group], normalise="constant", tokens_max=100)
    np.testing.assert_allclose([one.weights.max() for one in by_constant], 1 / 200)


def rewarded(reward: float | None, *own: float | None) -> Trajectory:
    """A session with one trained token in each trace, and these rewards of the traces' own."""
    message = pb.Trajectory(session_id=f"s-{reward}-{own}", reward=reward)
    for one in own:
        message.traces.add(response_ids=bytes(4), loss_mask=b"\1", logprobs=bytes(4), reward=one)
    return read_trajectory(message)


def test_a_trace_counts_with_its_own_reward_else_with_the_sessions():
    one = rewarded(2, None, 0, -1.5)
    assert [trace.reward for trace in one.traces] == [None, 0, -1.5]
    assert [one.reward_of(trace) for trace in one.traces] == [2, 0, -1.5]
    np.testing.assert_array_equal(rewards.rewards_of_traces(one), [2, 0, -1.5])
    # A trainer that gives the session another one means the traces without their own, too.
    np.testing.assert_array_equal(rewards.rewards_of_traces(replace(one, reward=5)), [5, 0, -1.5])
    # As a trainer may make them itself: without.
    np.testing.assert_array_equal(rewards.rewards_of_traces(session(3, [1], [1, 1])), [3, 3])
    np.testing.assert_array_equal(rewards.rewards_of_traces(session(3, [0])), [nan])
    np.testing.assert_array_equal(rewards.rewards_of_traces(rewarded(None, None, 1)), [nan, 1])


@pytest.mark.parametrize("normalise", ["session", "token", "constant"])
def test_samples_compare_own_rewards_of_traces_and_weigh_sessions_as_before(normalise):
    own, plain = [rewarded(9, 2, 4), rewarded(10, None)], [rewarded(9, None, None), rewarded(10, None)]
    found, before = (rewards.samples([one], normalise=normalise, tokens_max=50) for one in (own, plain))
    np.testing.assert_allclose([one.advantages[0] for one in found], [-8, -6, 7])
    np.testing.assert_allclose([one.weights for one in found], [one.weights for one in before])
    # A session of which one trace has no reward at all takes no part.
    left_out = rewards.samples([[rewarded(None, None, 1), rewarded(1, None), rewarded(0, None)]])
    np.testing.assert_allclose([one.advantages[0] for one in left_out], [1, -1])


def test_samples_take_rewards_of_traces():
    group = [session(9, [1], [1]), session(9, [1, 1])]
    given = {group[0].session_id: [2.0, 4.0], group[1].session_id: [10.0]}
    found = rewards.samples([group], trace_rewards=lambda one: given[one.session_id])
    np.testing.assert_allclose([one.advantages[0] for one in found], [-8, -6, 7])


@pytest.mark.parametrize("normalise", ["session", "token", "constant"])
def test_what_a_session_counts_does_not_depend_on_how_often_it_forked(normalise):
    random = np.random.default_rng(11)
    for _ in range(100):
        groups = [random_group(random) for _ in range(random.integers(1, 4))]
        forked = [[forked_at_random(one, random) for one in group] for group in groups]
        whole = counted(rewards.samples(groups, normalise=normalise, tokens_max=50))
        again = counted(rewards.samples(forked, normalise=normalise, tokens_max=50))
        assert whole.keys() == again.keys()
        for session_id, value in whole.items():
            np.testing.assert_allclose(again[session_id], value, rtol=1e-5)
        if whole and normalise == "session":
            np.testing.assert_allclose([weight for weight, _ in whole.values()], 1 / len(whole), rtol=1e-5)


def test_what_does_not_fit_is_refused():
    group = [session(1, [1], [1]), session(0, [1])]
    with pytest.raises(ValueError, match="needs tokens_max"):
        rewards.samples([group], normalise="constant")
    with pytest.raises(ValueError, match="2 traces and 1 rewards"):
        rewards.samples([group], trace_rewards=lambda _: [1.0])
    for groups in ([group], []):
        with pytest.raises(ValueError, match="estimator 'grpo' is none of leave_one_out, group_norm"):
            rewards.samples(groups, estimator="grpo")
        with pytest.raises(ValueError, match="normalise 'length' is none of session, token, constant"):
            rewards.samples(groups, normalise="length")
    with pytest.raises(ValueError, match="estimator 'mean'"):
        rewards.trace_advantages([of(1)], estimator="mean")


def test_one_group_in_place_of_several_is_told():
    group = [session(1, [1]), session(0, [1])]
    with pytest.raises(TypeError, match=r"one group, and several are needed: \[batch.trajectories\], or \[batch\]"):
        rewards.samples(group)
    with pytest.raises(TypeError, match=r"one Batch is one group, and several are needed: \[batch\]"):
        rewards.samples(read_batch(pb.TrajectoryBatch(), None))
    with pytest.raises(TypeError, match=r"Trajectory is no Sample: give rewards.samples"):
        arrays.micro_batches(group, tokens_max=10)


def forked_at_random(one: Trajectory, random: np.random.Generator) -> Trajectory:
    """The same trained tokens over more traces."""
    cut = [
        part
        for each in one.traces
        for part in np.split(each.loss_mask, np.sort(random.integers(0, len(each.loss_mask) + 1, 2)))
    ]
    return trajectory(one.reward, [trace(mask) for mask in cut], one.session_id)


def counted(found: Sequence[rewards.Sample]) -> dict[str, tuple[float, float]]:
    """For each session: the sum of its weights, and of weight x advantage."""
    sums: dict[str, tuple[float, float]] = {}
    for one in found:
        weight, both = sums.get(one.trajectory.session_id, (0.0, 0.0))
        product = (one.weights * one.advantages).sum(dtype=np.float64)
        sums[one.trajectory.session_id] = (weight + one.weights.sum(dtype=np.float64), both + product)
    return sums
