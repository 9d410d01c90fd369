"""Samples in arrays: both layouts of a batch give the same, and every value stands where it belongs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support import batch, in_columns, trace, trajectory

from polar_mesh import Batch, arrays, rewards
from polar_mesh.batches import read_batch
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesResponse
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import CallSpan, TrajectoryBatch
from polar_mesh.wire import StreamMessage

COLUMNS = ("input_ids", "attention_mask", "position_ids", "loss_mask", "logprobs", "advantages", "weights", "sequences")
LAYOUTS = ("padded", "packed")


def received(message: TrajectoryBatch) -> Batch:
    """As the client has it, from the bytes of the stream."""
    data = StreamTrajectoriesResponse(batch=message).SerializeToString()
    return read_batch(StreamMessage(memoryview(data)).batch, None)


def some_group(random: np.random.Generator, number: int) -> TrajectoryBatch:
    """Sessions with and without rewards, trained ids, prompts and rewards of their traces' own; some without a trace."""
    message = TrajectoryBatch(batch_id=number, task_id=f"t-{number}", group_id="g0")
    for index in range(random.integers(0, 7)):
        reward = None if random.random() < 0.2 else float(random.integers(0, 3))
        one = message.trajectories.add(session_id=f"s-{number}-{index}", sample_index=index, reward=reward)
        for _ in range(random.integers(0, 4)):
            prompt, response = random.integers(0, 6), random.integers(0, 9)
            mask = random.integers(0, 2, response).astype("u1")
            one.traces.add(
                prompt_ids=random.integers(1, 99, prompt).astype("<i4").tobytes(),
                response_ids=random.integers(1, 99, response).astype("<i4").tobytes(),
                loss_mask=mask.tobytes(),
                logprobs=(-mask * random.random(response)).astype("<f4").tobytes(),
                reward=float(random.normal()) if random.random() < 0.3 else None,
                spans=[CallSpan(start=0, length=int(response), policy_version=int(random.integers(1, 5)))],
            )
    return message


def copy(message: TrajectoryBatch) -> TrajectoryBatch:
    return TrajectoryBatch.FromString(message.SerializeToString())


@pytest.mark.parametrize("normalise", ["session", "token", "constant"])
@pytest.mark.parametrize("estimator", ["leave_one_out", "group_norm"])
def test_both_layouts_of_a_batch_give_the_same_arrays(estimator, normalise):
    random, found = np.random.default_rng(3), 0
    for _ in range(25):
        messages = [some_group(random, number) for number in range(random.integers(1, 5))]
        whole = [received(one) for one in messages]
        # The sessions' trajectories alone, too.
        forms = [whole, [one.trajectories for one in whole], [received(in_columns(copy(one))) for one in messages]]
        options = {"estimator": estimator, "normalise": normalise, "tokens_max": 40}
        first, *others = [rewards.samples(form, **options) for form in forms]
        found += len(first)
        for layout in LAYOUTS:
            made = [arrays.micro_batches(one, tokens_max=30, layout=layout, pad_id=7) for one in (first, *others)]
            for of_first, *of_others in zip(*made, strict=True):
                for other in of_others:
                    for name in (*COLUMNS, "boundaries", "policy_versions"):
                        ours, theirs = getattr(of_first, name), getattr(other, name)
                        assert ours.dtype == theirs.dtype
                        np.testing.assert_array_equal(ours, theirs, err_msg=name)
                    told = [[(one.trajectory.session_id, one.trace.reward) for one in of.samples] for of in (of_first, other)]
                    assert told[0] == told[1]
        outcomes = [[rewards.outcome_rewards(group) for group in form] for form in forms]
        for one in outcomes[1:]:
            np.testing.assert_equal(one, outcomes[0])
    assert found > 100


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_masked_counts_nothing_and_a_session_the_same_however_often_it_forked(layout):
    random = np.random.default_rng(4)
    for number in range(40):
        group = received(in_columns(some_group(random, number)))
        sums: dict[str, float] = {}
        for step in arrays.micro_batches(rewards.samples([group]), tokens_max=30, layout=layout):
            for name in ("weights", "advantages", "logprobs"):
                assert not getattr(step, name)[~step.loss_mask].any()
            for index, sample in enumerate(step.samples):
                here = float(step.weights[step.sequences == index].sum(dtype=np.float64))
                # A first id that comes after nothing is not trained.
                lost = float(sample.weights[0]) if not len(sample.prompt_ids) else 0.0
                sums[sample.trajectory.session_id] = sums.get(sample.trajectory.session_id, 0.0) + here + lost
        np.testing.assert_allclose(list(sums.values()), [1 / max(len(sums), 1)] * len(sums), rtol=1e-5)


def test_samples_of_columns_are_views_of_them_and_no_trajectory_is_made(monkeypatch):
    group = received(in_columns(batch(1, tokens=8, samples=3)))
    monkeypatch.setattr("polar_mesh.batches.read_details", lambda _: pytest.fail("the details were decoded"))
    samples = rewards.samples([group])
    assert len(samples) == 3
    for name in ("prompt_ids", "response_ids", "loss_mask", "logprobs"):
        assert all(np.shares_memory(getattr(one, name), getattr(group.columns, name)) for one in samples)
    arrays.micro_batches(samples, tokens_max=100)
    rewards.outcome_rewards(group)


def test_a_sample_is_pickled_with_its_own_trajectory_alone():
    samples = rewards.samples([received(in_columns(batch(1, tokens=8, samples=3)))])
    data = pickle.dumps(samples[1])
    again = pickle.loads(data)
    assert b"s-1-1" in data
    assert b"s-1-2" not in data
    assert again.trajectory.session_id == "s-1-1"
    np.testing.assert_array_equal(again.trace.response_ids, samples[1].response_ids)
    np.testing.assert_array_equal(again.advantages, samples[1].advantages)


def test_changed_advantages_are_what_is_placed():
    # A step may count with advantages of its own, in place.
    samples = rewards.samples([[trajectory(1.0, [trace([0, 1, 1])]), trajectory(0.0, [trace([1])])]])
    samples[0].advantages[2] = 5
    step = arrays.pack(samples)
    np.testing.assert_allclose(step.advantages, [[0, 0, 0, 1, 5, 0, 0, -1]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_to_train_makes_no_arrays(layout):
    assert arrays.micro_batches([], tokens_max=10, layout=layout) == []
    assert arrays.micro_batches(rewards.samples([received(in_columns(TrajectoryBatch()))]), tokens_max=10, layout=layout) == []


def test_a_packed_row_is_called_without_a_mask():
    samples = rewards.samples([[trajectory(1.0, [trace([0, 1, 1])]), trajectory(0.0, [trace([1])])]])
    assert set(arrays.pack(samples).inputs) == {"input_ids", "position_ids", "use_cache"}
    assert set(arrays.pad(samples).inputs) == {"input_ids", "position_ids", "use_cache", "attention_mask"}
    assert arrays.pack(samples).length_max == 5
    np.testing.assert_array_equal(arrays.pack(samples).boundaries, [0, 5, 8])
