"""The bridge in TRL's AsyncGRPOTrainer: rollouts go on while it trains, its weights come back as policy versions.

That trainer asks the GPU for its name, and computes attention by a kernel for GPUs, which it fetches. Here the same
attention is computed by torch, and there is a name; all else is TRL's own.
"""

from __future__ import annotations

import threading
import time
from dataclasses import fields

import grpc
import numpy as np
import pytest
import torch
from datasets import Dataset
from small_mesh import SAMPLED, TOOL, SmallMesh, make_model
from transformers import AttentionInterface
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
from trl.experimental.async_grpo.packing import TREE_ATTENTION

import polar_mesh.errors
from polar_mesh.bridges.trl import RolloutWorker, WeightTransfer

GENERATIONS = 8
TASKS = [
    {"instruction": word, "num_samples": GENERATIONS, "harness": {"name": "shell"}} for word in ("count", "seven")
]

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def mesh(model, stack):
    mesh = SmallMesh(model)
    stack.callback(mesh.stop)
    return mesh


@pytest.fixture
def client(mesh, stack):
    return stack.enter_context(polar_mesh.Client(mesh.url, mesh.url))


@pytest.fixture
def policy(mesh, stack):
    return stack.enter_context(polar_mesh.PolicyClient(mesh.url))


def tree_attention(module, query, key, value, mask, *, scaling=None, **places):
    """Each segment of the packed row looks at the path from the root to it, causally."""
    out = torch.zeros_like(query)
    queries, keys = places["tree_cu_seqlens_q"].tolist(), places["tree_cu_seqlens_k"].tolist()
    for segment in range(len(queries) - 1):
        q = slice(queries[segment], queries[segment + 1])
        path = places["tree_kv_index"][keys[segment] : keys[segment + 1]]
        length, seen = q.stop - q.start, len(path)
        allowed = torch.ones(length, seen, dtype=torch.bool).tril(seen - length)
        out[:, :, q] = torch.nn.functional.scaled_dot_product_attention(
            query[:, :, q], key[:, :, path], value[:, :, path], attn_mask=allowed, scale=scaling
        )
    return out.transpose(1, 2), None


def test_reward_rises_and_what_was_trained_is_acknowledged(model, mesh, client, policy, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "none")
    mesh.policy_version = 40  # The mesh has had trainers before.
    worker = RolloutWorker(client, TASKS, policy=policy, tasks_max=4)
    trainer = AsyncGRPOTrainer(
        model=str(model),
        args=AsyncGRPOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            learning_rate=1e-2,
            max_steps=30,
            per_device_train_batch_size=4 * GENERATIONS,
            token_budget=0,
            max_staleness=2,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list([{"prompt": "unused"}]),
        rollout_worker=worker,
        weight_transfer=WeightTransfer(policy, mesh.load),
    )
    AttentionInterface.register(TREE_ATTENTION, tree_attention)
    trainer.train()
    log = [one for one in trainer.state.log_history if one.get("reward") is not None]
    assert np.mean([one["reward"] for one in log[-3:]]) > 2 * log[0]["reward"], log
    assert max(one["sample/staleness_max"] for one in log) <= 2
    # Before the first step, then after each.
    assert mesh.policy_version == 40 + 31
    assert log[0]["ratio"] == pytest.approx(1, abs=1e-3)
    acked, given = mesh.trajectories.acked, len(mesh.trajectories.batches)
    assert acked
    assert acked == set(range(1, len(acked) + 1))
    assert len(acked) < given
    # What nobody will train is not left to run.
    submitted = [one.spec.task_id for one in mesh.submitted]
    assert mesh.cancelled
    assert set(mesh.cancelled) <= set(submitted[-4:])


def test_a_sample_is_the_trace(mesh, client, policy):
    mesh.policy_version = 7
    worker = RolloutWorker(client, TASKS, policy=policy, tasks_max=1)
    worker.update_model_version(3)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=20) for _ in range(GENERATIONS)]
    worker.stop()
    assert {one.name for one in fields(RolloutSample)} == set(RolloutSample.__slots__)
    trajectories = mesh.trajectories.batches[0].trajectories
    mask = [0] * len("count") + [1] * SAMPLED + [0] * len(TOOL) + [1] * SAMPLED
    for sample, trajectory in zip(samples, trajectories, strict=True):
        (trace,) = trajectory.traces
        ids = np.frombuffer(trace.prompt_ids + trace.response_ids, "<i4")
        np.testing.assert_array_equal(sample.input_ids, ids)
        np.testing.assert_array_equal(sample.completion_mask, mask)
        np.testing.assert_array_equal(sample.old_log_probs[-SAMPLED:], np.frombuffer(trace.logprobs, "<f4")[-SAMPLED:])
        assert sample.metrics["reward"] == trajectory.reward
        assert (sample.model_version, sample.group_id) == (3, 0)
    rewards = np.array([one.reward for one in trajectories])
    expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-6)
    np.testing.assert_allclose([one.advantage for one in samples], expected, rtol=1e-5)
    assert mesh.trajectories.acked == set()


def test_a_sample_has_the_reward_of_its_trace_where_sessions_have_none(mesh, client):
    """TRL takes the mean of what it is told, and None has none."""
    mesh.by_trace = True
    worker = RolloutWorker(client, TASKS, tasks_max=1)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=20) for _ in range(GENERATIONS)]
    worker.stop()
    trajectories = mesh.trajectories.batches[0].trajectories
    assert [one.metrics["reward"] for one in samples] == [one.traces[0].reward for one in trajectories]


def test_samples_are_of_its_own_tasks_whichever_process_submitted_them(mesh, client):
    """Two trainings on one mesh, of which the name of one begins with that of the other."""
    for task_id in ("trl-async-eval-0123456789ab-0", "trl-async-0123456789ab-7", "trl-async-by-hand"):
        client.submit({**TASKS[0], "task_id": task_id})
    worker = RolloutWorker(client, TASKS, tasks_max=1)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=20) for _ in range(2 * GENERATIONS)]
    worker.stop()
    expected = [one.traces[0] for index in (1, 3) for one in mesh.trajectories.batches[index].trajectories]
    for sample, trace in zip(samples, expected, strict=True):
        np.testing.assert_array_equal(sample.input_ids, np.frombuffer(trace.prompt_ids + trace.response_ids, "<i4"))


def test_a_full_queue_holds_the_worker_and_stops_with_it(mesh, client):
    worker = RolloutWorker(client, TASKS, tasks_max=2, queue_max=3)
    worker.start()
    wait_for(worker.rollout_buffer.full)
    worker.check_health(stale_after_s=10)
    worker.stop()
    assert worker.rollout_buffer.qsize() == 3
    # One batch had come; the task of the other is not left to run.
    assert len(mesh.cancelled) >= 1


def test_what_ends_the_worker_is_told_to_the_trainer(client):
    worker = RolloutWorker(client, [{"instructions": "misspelt"}], tasks_max=2)
    worker.start()
    worker._thread.join(timeout=20)
    with pytest.raises(RuntimeError, match="the rollouts ended") as raised:
        worker.check_health(stale_after_s=10)
    assert isinstance(raised.value.__cause__, polar_mesh.errors.InvalidArgument)


def test_why_no_sample_comes_is_told_in_the_log_and_not_for_each_group(mesh, client, caplog):
    mesh.without_reward = set(range(GENERATIONS))
    worker = RolloutWorker(client, TASKS, tasks_max=1)
    worker.start()
    wait_for(lambda: len(mesh.submitted) > 3)
    worker.stop()
    worker.check_health(stale_after_s=10)
    assert worker.rollout_buffer.empty()
    (told,) = caplog.messages
    first = mesh.submitted[0].spec.task_id
    assert told == f"groups in a row that train nothing: 1; the last one, of task {first}: " + (
        "no session has both a reward and a trained token"
    )


def test_an_acknowledgement_that_fails_while_the_queue_is_full_is_told_to_the_trainer(mesh, client):
    """Else a group would go half to the trainer and half nowhere, and be acknowledged never."""
    worker = RolloutWorker(client, TASKS, tasks_max=1, queue_max=GENERATIONS)
    worker.start()
    for _ in range(GENERATIONS + 1):
        worker.rollout_buffer.get(timeout=20)
    # The second group is in the queue but for one; the third one's samples have to wait.
    wait_for(lambda: worker.rollout_buffer.full() and len(mesh.submitted) == 3)
    mesh.trajectories.ack_failures = [(grpc.StatusCode.DEADLINE_EXCEEDED, [])]
    for version in range(3):
        worker.update_model_version(version)
    worker._thread.join(timeout=20)
    assert not mesh.trajectories.ack_failures
    with pytest.raises(RuntimeError, match="the rollouts ended") as raised:
        worker.check_health(stale_after_s=10)
    assert isinstance(raised.value.__cause__, polar_mesh.errors.DeadlineExceeded)


def test_a_worker_that_fails_leaves_no_task_running(mesh, client):
    worker = RolloutWorker(client, [*TASKS, {"instructions": "misspelt"}], tasks_max=3)
    mesh.cancels_refused = 1
    worker.start()
    worker._thread.join(timeout=20)
    with pytest.raises(RuntimeError, match="the rollouts ended"):
        worker.check_health(stale_after_s=10)
    # Of three, two that ran and one that the mesh never took.
    assert mesh.cancels_refused == 0
    assert len(mesh.cancelled) == 2
    assert {one.spec.task_id for one in mesh.submitted} & set(mesh.cancelled)


def wait_for(condition, timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.02)
