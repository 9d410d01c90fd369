"""Tensors, micro-batches and logprobs against what numpy and a model say of the same traces."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch
from support import trace, trajectory
from transformers import LlamaConfig, LlamaForCausalLM

import polar_mesh.torch as pt
from polar_mesh import rewards
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import CallSpan, PolicyRun

VOCABULARY = 200


def samples_of(*lengths: int, prompt: int = 2) -> list[rewards.Sample]:
    """One session for each length, which trains every second id."""
    group = [
        trajectory(float(index), [trace(np.arange(length) % 2, prompt)]) for index, length in enumerate(lengths)
    ]
    return rewards.samples([group])


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(3)
    shape = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(shape).eval()


def test_tensors_lie_on_the_received_bytes():
    one = trace([0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = pt.tensors(one)
    for name, dtype in (
        ("prompt_ids", torch.int32),
        ("response_ids", torch.int32),
        ("loss_mask", torch.uint8),
        ("logprobs", torch.float32),
    ):
        array, tensor = getattr(one, name), getattr(columns, name)
        assert tensor.dtype == dtype
        assert tensor.data_ptr() == array.ctypes.data
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_every_value_is_found_again_at_its_place(layout):
    samples = samples_of(5, 1, 8, 3)
    (batch,) = pt.micro_batches(samples, tokens_max=100, layout=layout, pad_id=7)
    assert sorted(map(id, batch.samples)) == sorted(map(id, samples))
    for index, sample in enumerate(batch.samples):
        at = batch.sequences == index
        one = sample.trace
        ids = np.concatenate([one.prompt_ids, one.response_ids])
        np.testing.assert_array_equal(batch.input_ids[at], ids)
        np.testing.assert_array_equal(batch.position_ids[at], np.arange(len(ids)))
        zeros = np.zeros(len(one.prompt_ids))
        for name, column in (
            ("loss_mask", one.loss_mask),
            ("logprobs", one.logprobs),
            ("advantages", sample.advantages),
            ("weights", sample.weights),
        ):
            np.testing.assert_array_equal(getattr(batch, name)[at], np.concatenate([zeros, column]))
    empty = batch.sequences == -1
    assert (batch.attention_mask == ~empty).all()
    assert (batch.input_ids[empty] == 7).all()
    assert (batch.weights[empty] == 0).all()
    assert bool(empty.any()) == (layout == "padded")


def test_a_packed_row_tells_where_its_sequences_begin():
    batch = pt.pack(samples_of(5, 2))
    assert batch.input_ids.shape == (1, 11)
    np.testing.assert_array_equal(batch.boundaries, [0, 7, 11])
    assert batch.boundaries.dtype == torch.int32


def test_policy_versions_are_those_of_the_calls():
    runs = [PolicyRun(start=1, length=1, policy_version=3), PolicyRun(start=2, length=1, policy_version=4)]
    calls = [
        CallSpan(start=1, length=2, policy_version=3, policy_runs=runs),
        CallSpan(start=4, length=1, policy_version=5),
    ]
    one = trace([0, 1, 1, 0, 1], spans=calls)
    group = [trajectory(1, [one]), trajectory(0, [trace([1])])]
    batch = pt.pad(rewards.samples([group]))
    np.testing.assert_array_equal(batch.policy_versions[0], [-1, -1, -1, 3, 4, -1, 5])


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_micro_batches_hold_everything_once_within_their_budget(layout):
    random = np.random.default_rng(5)
    for _ in range(30):
        samples = samples_of(*random.integers(2, 60, random.integers(2, 40)))
        made = pt.micro_batches(samples, tokens_max=62, layout=layout)
        assert all(batch.input_ids.numel() <= 62 for batch in made)
        held = list(itertools.chain.from_iterable(batch.samples for batch in made))
        assert sorted(map(id, held)) == sorted(map(id, samples))
        total = sum(batch.weights.double().sum().item() for batch in made)
        assert total == pytest.approx(1)


def test_what_fits_into_one_row_is_packed_into_one():
    # With the prompts 40, 30, 30, 20, 20, 10 and 10 ids: two full rows, and one of the rest.
    samples = samples_of(38, 28, 28, 18, 18, 8, 8)
    made = pt.micro_batches(samples, tokens_max=60, layout="packed")
    assert [batch.input_ids.shape[1] for batch in made] == [60, 60, 40]


def test_a_trace_above_the_budget_is_named():
    samples = samples_of(4, 20)
    with pytest.raises(ValueError, match=f"session {samples[1].trajectory.session_id} has 22 ids"):
        pt.micro_batches(samples, tokens_max=21)


def test_another_layout_is_refused():
    with pytest.raises(ValueError, match="layout 'pack' is none of padded, packed"):
        pt.micro_batches(samples_of(4), tokens_max=21, layout="pack")


def test_nothing_to_train_makes_no_micro_batch():
    assert pt.micro_batches([], tokens_max=10) == []
    assert pt.pad([]).input_ids.shape == (0, 0)
    assert pt.pack([]).input_ids.shape == (1, 0)


def test_a_first_id_is_never_trained():
    # A trace without a prompt: nothing comes before its first id.
    group = [trajectory(1, [trace([1, 1], prompt=0)]), trajectory(0, [trace([1, 1])])]
    batch = pt.pack(rewards.samples([group]))
    np.testing.assert_array_equal(batch.loss_mask[0], [False, True, False, False, True, True])
    assert ((batch.weights != 0) == batch.loss_mask).all()


def test_logprobs_are_those_of_the_model_one_trace_at_a_time(model):
    samples = samples_of(9, 4, 6)
    batch = pt.pad(samples)
    with torch.no_grad():
        output = model(**batch.inputs)
        found = pt.token_logprobs(output.logits, batch.input_ids, temperature=0.7)
        for index, sample in enumerate(batch.samples):
            ids = torch.tensor(np.concatenate([sample.trace.prompt_ids, sample.trace.response_ids]), dtype=torch.long)
            alone = torch.log_softmax(model(ids[None]).logits[0] / 0.7, dim=-1)
            expected = alone[torch.arange(len(ids) - 1), ids[1:]]
            row = found[index, : len(ids)]
            assert row[0] == 0
            torch.testing.assert_close(row[1:], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 8), (2, 1)])
def test_logprobs_and_their_gradient_are_the_same_part_by_part(shape, monkeypatch):
    monkeypatch.setattr(pt, "PART_IDS", 4)
    logits = torch.randn(*shape, VOCABULARY, dtype=torch.bfloat16, requires_grad=True)
    ids = torch.randint(VOCABULARY, shape)
    found = pt.token_logprobs(logits, ids, temperature=0.7)
    whole = torch.log_softmax(logits[:, :-1].float() / 0.7, dim=-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    assert found.shape == shape
    assert found.dtype == torch.float32
    torch.testing.assert_close(found[:, 1:], whole)
    assert not found[:, :1].any()
    grads = [torch.autograd.grad((one**2).sum(), logits)[0] for one in (found, whole)]
    torch.testing.assert_close(*grads)


def test_packed_sequences_do_not_see_each_other(model):
    samples = samples_of(9, 4, 6)
    with torch.no_grad():
        padded, packed = (make(samples) for make in (pt.pad, pt.pack))
        apart, together = (pt.token_logprobs(model(**one.inputs).logits, one.input_ids) for one in (padded, packed))
    for index in range(len(samples)):
        alone, mine = (of[of_batch.sequences == index][1:] for of, of_batch in ((apart, padded), (together, packed)))
        torch.testing.assert_close(mine, alone, atol=1e-5, rtol=1e-4)


def test_both_kinds_of_arrays_are_the_same_memory_and_move_together():
    batch = pt.pad(samples_of(5, 3))
    same = batch.to("cpu")
    assert same.samples == batch.samples
    assert same.input_ids.data_ptr() == batch.input_ids.data_ptr()
    half = batch.to("meta")
    assert half.input_ids.is_meta
    assert half.boundaries.is_meta


def test_the_gradient_does_not_depend_on_how_the_step_is_cut(model):
    samples = samples_of(9, 4, 6, 12, 3)

    def gradient(tokens_max: int, layout: pt.Layout = "padded") -> torch.Tensor:
        model.zero_grad()
        for step in pt.micro_batches(samples, tokens_max=tokens_max, layout=layout):
            logits = model(**step.inputs).logits
            ratio = torch.exp(pt.token_logprobs(logits, step.input_ids) - step.logprobs)
            (-step.weights * step.advantages * ratio).sum().backward()
        return torch.cat([one.grad.flatten() for one in model.parameters()])

    whole = gradient(1000)
    assert whole.abs().max() > 0
    torch.testing.assert_close(gradient(14), whole, atol=1e-6, rtol=1e-3)
    torch.testing.assert_close(gradient(1000, "packed"), whole, atol=1e-6, rtol=1e-3)
