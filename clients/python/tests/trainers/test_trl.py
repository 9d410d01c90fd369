"""The bridge in TRL's own trainers: what they are given, what they learn from it, what is acknowledged when."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from small_mesh import SAMPLED, TOOL, SmallMesh, make_model
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

import polar_mesh
from polar_mesh.bridges.trl import WeightTransfer, polar_reward, rollout_func, scored

GENERATIONS = 8
PROMPTS = ["count", "seven", "give", "what"]

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
def weights(mesh, stack):
    return WeightTransfer(stack.enter_context(polar_mesh.PolicyClient(mesh.url)), mesh.load)


def task(prompt: str) -> dict:
    return {"instruction": prompt, "harness": {"name": "shell"}}


def brevity(completion_ids, **_):
    """5 for each row."""
    return [5.0 for _ in completion_ids]


async def brevity_later(**columns):
    return brevity(**columns)


def trainer_of(model, folder, rollouts, reward_funcs=polar_reward, peft_config=None, **options) -> GRPOTrainer:
    settings = {
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "per_device_train_batch_size": 4 * GENERATIONS,
        "num_generations": GENERATIONS,
        "max_completion_length": 2 * SAMPLED + len(TOOL),
        "beta": 0.0,
        "disable_tqdm": True,
        "shuffle_dataset": False,
        **options,
    }
    return GRPOTrainer(
        model=str(model),
        reward_funcs=reward_funcs,
        args=GRPOConfig(output_dir=str(folder), **settings),
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in PROMPTS * 16]),
        rollout_func=rollouts,
        peft_config=peft_config,
    )


def test_reward_rises_and_each_step_is_acknowledged(model, mesh, client, weights, tmp_path):
    rollouts = rollout_func(client, task, weights=weights)
    trainer = trainer_of(model, tmp_path, rollouts, max_steps=20)
    trainer.train()
    log = [one for one in trainer.state.log_history if "reward" in one]
    assert np.mean([one["reward"] for one in log[-3:]]) > 2 * log[0]["reward"], json.dumps(log)
    # The rewards and what was sampled are those of the mesh: the first step's, as everything was kept.
    first = mesh.trajectories.batches[:4]
    assert log[0]["reward"] == pytest.approx(np.mean([one.reward for batch in first for one in batch.trajectories]))
    # One task for each prompt of a step, with a new version of the weights each time.
    assert len(mesh.submitted) == 20 * 4
    assert {one.spec.num_samples for one in mesh.submitted} == {GENERATIONS}
    assert [one.spec.instruction for one in mesh.submitted[:4]] == PROMPTS
    versions = [one.trajectories[0].policy_version_min for one in mesh.trajectories.batches]
    assert versions == [1 + index // 4 for index in range(80)]
    # The last step's are the trainer's to acknowledge: it may still have to be saved.
    assert mesh.trajectories.acked == set(range(1, 77))
    rollouts.acknowledge()
    assert mesh.trajectories.acked == set(range(1, 81))
    rollouts.close()


def trained_inputs(trainer: GRPOTrainer) -> dict:
    """What the loss of its only step is taken over."""
    seen = []
    compute_loss = trainer.compute_loss

    def spy(model, inputs, *args, **kwargs):
        seen.append(inputs)
        return compute_loss(model, inputs, *args, **kwargs)

    trainer.compute_loss = spy
    trainer.train()
    (inputs,) = seen
    return inputs


def test_loss_is_taken_over_sampled_tokens_only(model, mesh, client, tmp_path):
    rollouts = rollout_func(client, task)
    inputs = trained_inputs(trainer_of(model, tmp_path, rollouts, max_steps=1))
    mask = [1] * SAMPLED + [0] * len(TOOL) + [1] * SAMPLED
    masks = inputs["tool_mask"] * inputs["completion_mask"]
    np.testing.assert_array_equal(masks, np.tile(mask, (4 * GENERATIONS, 1)))
    rollouts.close()


def test_what_does_not_fit_into_rows_is_counted(model, mesh, client, tmp_path):
    mesh.forked_tokens = SAMPLED
    mesh.without_reward = {0}
    rollouts = rollout_func(client, task)
    trainer = trainer_of(model, tmp_path, rollouts, max_steps=1)
    trainer.train()
    sessions = 4 * GENERATIONS
    assert rollouts.counts["traces_left_out"] == sessions
    assert rollouts.counts["trained_tokens_left_out"] == sessions * SAMPLED
    # The trace with more to train is the row, and who has no reward is in no mean.
    log = next(one for one in trainer.state.log_history if "reward" in one)
    assert log["completions/mean_length"] == 2 * SAMPLED
    rewards = [one.reward for batch in mesh.trajectories.batches for one in batch.trajectories if one.sample_index]
    assert log["rewards/polar_reward/mean"] == pytest.approx(np.mean(rewards))
    rollouts.close()


@pytest.mark.parametrize("other", [brevity, brevity_later])
def test_another_reward_leaves_sessions_without_one_out(model, mesh, client, tmp_path, other):
    """Each counts against those of its group that have a reward, and who has none does not count."""
    mesh.without_reward = {0, 3}
    rollouts = rollout_func(client, task)
    functions = [polar_reward, scored(other)]
    trainer = trainer_of(model, tmp_path, rollouts, functions, max_steps=1, scale_rewards="none")
    advantages = trained_inputs(trainer)["advantages"]
    groups = [[one.reward for one in batch.trajectories if one.HasField("reward")] for batch in mesh.trajectories.batches]
    expected = [reward - np.mean(rewards) for rewards in groups for reward in rewards] + [0.0] * 2 * len(groups)
    np.testing.assert_allclose(np.sort(advantages), np.sort(expected), atol=1e-5)
    rollouts.close()


def test_the_engine_gets_a_peft_model_s_adapters_in_its_base(model, mesh, client, weights, tmp_path):
    """Its names and what is merged are those of the engine's model; the trainer's base stays as it was."""
    adapters = LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    rollouts = rollout_func(client, task, weights=weights)
    trainer = trainer_of(model, tmp_path, rollouts, max_steps=1, learning_rate=0.0, peft_config=adapters)
    trainer.train()
    name = "model.layers.0.self_attn.q_proj"
    base = AutoModelForCausalLM.from_pretrained(model).get_submodule(name).weight
    kept = trainer.model.get_base_model().get_submodule(name).base_layer.weight
    torch.testing.assert_close(kept, base, rtol=0, atol=1e-6)
    served = {key: one.clone() for key, one in mesh.model.state_dict().items()}
    assert not torch.allclose(served[f"{name}.weight"], base, atol=1e-3)
    torch.testing.assert_close(served, dict(trainer.model.merge_and_unload().state_dict()), rtol=0, atol=1e-6)
    rollouts.close()


def test_sessions_are_sampled_at_the_temperature_of_the_loss(model, mesh, client, tmp_path):
    def warm(prompt):
        return {**task(prompt), "sampling": {"top_p": 0.9}}

    rollouts = rollout_func(client, warm)
    trainer_of(model, tmp_path, rollouts, max_steps=1, temperature=0.5).train()
    assert {(one.spec.sampling.temperature, one.spec.sampling.top_p) for one in mesh.submitted} == {(0.5, 0.9)}
    rollouts.close()


def test_another_temperature_than_that_of_the_loss_is_refused(model, mesh, client, tmp_path):
    rollouts = rollout_func(client, lambda prompt: {**task(prompt), "sampling": {"temperature": 1.0}})
    trainer = trainer_of(model, tmp_path, rollouts, max_steps=1, temperature=0.5)
    with pytest.raises(ValueError, match=r"sampling\.temperature of a task is 1, and the trainer's is 0\.5"):
        trainer.train()
    assert mesh.submitted == []


def test_another_reward_that_gives_them_one_is_refused(model, mesh, client, tmp_path):
    trainer = trainer_of(model, tmp_path, rollout_func(client, task), [polar_reward, brevity], max_steps=1)
    with pytest.raises(ValueError, match=r"from brevity: .*scored\(\)"):
        trainer.train()
    assert mesh.submitted == []


def test_a_group_that_the_mesh_lost_trains_nothing(model, mesh, client, tmp_path, caplog):
    mesh.lost_groups = {2}
    rollouts = rollout_func(client, task)
    trainer = trainer_of(model, tmp_path, rollouts, max_steps=1)
    trainer.train()
    assert rollouts.counts["sessions_lost"] == GENERATIONS
    lost = mesh.submitted[1].spec.task_id
    assert any(f"the last one, of task {lost}: SANDBOX_LOST: gone" in one for one in caplog.messages)
    assert rollouts.counts["sessions_without_trace"] == 0
    log = next(one for one in trainer.state.log_history if "reward" in one)
    rewards = [one.reward for batch in mesh.trajectories.batches for one in batch.trajectories if one.session_id]
    assert len(rewards) == 3 * GENERATIONS
    assert log["rewards/polar_reward/mean"] == pytest.approx(np.mean(rewards))
    rollouts.close()


def test_what_an_earlier_process_held_is_passed_over(model, mesh, client, tmp_path):
    client.submit({"task_id": "trl-old-0", "num_samples": 2, **task("old")})
    rollouts = rollout_func(client, task)
    trainer_of(model, tmp_path, rollouts, max_steps=1).train()
    assert mesh.trajectories.acked == {1}
    rollouts.close()


def test_a_failed_transfer_leaves_no_pause(mesh, stack):
    def broken(parameters, version):
        raise OSError("disk full")

    weights = WeightTransfer(stack.enter_context(polar_mesh.PolicyClient(mesh.url)), broken)
    with pytest.raises(OSError, match="disk full"):
        weights.sync(iter([]))
    assert not mesh.paused
    assert mesh.policy_version == 0
