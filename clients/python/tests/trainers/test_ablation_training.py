"""test/bench/ablation in torch: what has to be the same for both builders, and what would make it another."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import random
import sys

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).parents[4]
sys.path[:0] = [str(ROOT / "examples/train_cpu"), str(ROOT / "test/bench/ablation")]

import doors  # noqa: E402
import training  # noqa: E402
from base import base_model  # noqa: E402
from measure import is_same, measure  # noqa: E402
from mesh import site  # noqa: E402
from rollouts import GROUP_SIZE, Length, Stored, house, record  # noqa: E402
from traces import groups_of  # noqa: E402

TOLERANCE = 1e-5
VOCABULARY = 200

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def base():
    return base_model()


def sessions(base):
    """Lines of both builders for sessions of one, two and three calls, by the base model's logprobs."""
    rng, model = np.random.default_rng(0), training.load(base)
    told, per_request, merged = [], [], []
    for calls in (1, 2, 3):
        name, ids = f"s-{calls}", rng.integers(0, VOCABULARY, 8 * calls).tolist()
        mask = [0, 0, 0, 0, 1, 1, 1, 1] * calls
        with torch.no_grad():
            scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        logprobs = [0.0, *(float(scores[at - 1, ids[at]]) for at in range(1, len(ids)))]
        told.append({"session_id": name, "task_id": "t", "reward": float(calls == 2)})
        for end in range(8, 8 * calls + 1, 8):
            per_request.append(line(name, ids, mask, logprobs, end - 4, end))
        merged.append(line(name, ids, mask, logprobs, 4, 8 * calls))
    return told, per_request, merged


def line(name, ids, mask, logprobs, start, end):
    return {
        "session_id": name,
        "prompt_ids": ids[:start],
        "response_ids": ids[start:end],
        "loss_mask": mask[start:end],
        "logprobs": [logprob * trained for logprob, trained in zip(logprobs[start:end], mask[start:end], strict=True)],
    }


def distance(one, other):
    return float((one.values - other.values).norm() / one.values.norm())


def test_a_house_of_another_length_has_its_own_rules_and_leaves_the_game_as_it_was():
    rules = doors.TO_OPEN, doors.CALLS_MAX
    made = house(Length(doors=2, calls=3), "short", random.Random(0))
    files = {step["upload_file"]["target"]: step["upload_file"]["content"] for step in made["runtime"]["prepare"][:-1]}
    keys = next(json.loads(content) for target, content in files.items() if target.endswith("/keys.json"))
    assert len(keys) == 3
    assert made["instruction"].startswith("Go through 2 doors.")
    assert (doors.TO_OPEN, doors.CALLS_MAX) == rules


def test_both_builders_traces_have_the_same_gradient(base):
    told, *lines = sessions(base)
    first, second = (training.gradient(base, groups_of(told, each)) for each in lines)
    assert first.values.norm() > 1e-3
    assert distance(first, second) < TOLERANCE
    assert max(first.logprob_gap, second.logprob_gap) < TOLERANCE


def test_it_would_be_another_if_each_trace_counted_the_same(base, monkeypatch):
    told, per_request, merged = sessions(base)
    whole = training.gradient(base, groups_of(told, merged))
    session_weights = training.rewards.samples

    def trace_weights(groups, **options):
        return [
            dataclasses.replace(one, weights=one.weights / max(one.weights.sum(), TOLERANCE))
            for one in session_weights(groups, **options)
        ]

    monkeypatch.setattr(training.rewards, "samples", trace_weights)
    assert distance(whole, training.gradient(base, groups_of(told, per_request))) > 0.1


def test_it_would_be_another_if_a_context_were_not_what_was_served(base):
    told, per_request, merged = sessions(base)
    whole = training.gradient(base, groups_of(told, merged))
    per_request[-1]["prompt_ids"] = [*per_request[-1]["prompt_ids"][:-1], VOCABULARY]
    changed = training.gradient(base, groups_of(told, per_request))
    assert changed.logprob_gap > 0.01
    assert distance(whole, changed) > 0.01


def test_an_epoch_has_an_update_for_each_micro_batch(base, monkeypatch):
    told, per_request, merged = sessions(base)
    monkeypatch.setattr(training, "TOKENS_MAX", 24)
    updates = [training.epoch(base, groups_of(told, each)).updates for each in (per_request, merged)]
    # Rows of 24; 16 16; 8 8 8, filled up: 24, 16, 16 and 8 8 8 against 24, 16 and 8.
    assert updates == [4, 3]


def test_sessions_of_a_real_mesh_train_the_same(base, tmp_path):
    stored = Stored(tmp_path)
    with site(base) as where:
        record(where, Length(doors=2, calls=4), 1, stored, seed=1)
    measured = measure(stored, base)
    assert is_same(measured)
    calls = measured.figures["per_request"].size
    merged = measured.figures["prefix_merging"].size
    assert calls.sessions == merged.sessions == GROUP_SIZE
    assert calls.sequences == measured.calls > 2 * merged.sequences
    assert calls.processed > 1.5 * merged.processed
