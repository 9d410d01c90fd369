"""examples/train_cpu in parts: the engine against its own model, a step of GRPO, and one step of the whole."""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import linear_regression
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from polar_mesh import Client, PolarError, Trace
from polar_mesh.batches import read_batch
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import TrajectoryBatch
from support import trajectory

EXAMPLE = pathlib.Path(__file__).parents[4] / "examples" / "train_cpu"
sys.path.insert(0, str(EXAMPLE))

import base  # noqa: E402
import curves  # noqa: E402
import doors  # noqa: E402
import grpo  # noqa: E402
import report  # noqa: E402
from engine import Engine, Failed  # noqa: E402
from mesh import Site, running, site  # noqa: E402
from sampler import Request, Sampler  # noqa: E402
import train as training  # noqa: E402
from train import GROUP_SIZE, GROUPS_A_STEP, Options, train  # noqa: E402

MESSAGES = [{"role": "user", "content": doors.instruction([5, 1, 2, 3, 4])}]
TOLERANCE = 1e-4

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder():
    return base.base_model()


@pytest.fixture(scope="module")
def sampler(folder):
    return Sampler(folder)


@pytest.fixture(scope="module")
def engine(folder, tmp_path_factory):
    command = [sys.executable, EXAMPLE / "engine.py", folder, "--port", "0"]
    with running(command, tmp_path_factory.mktemp("engine")) as told:
        yield told["url"]


def post(url, **body):
    with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
        return json.load(answer)


def rescored(model, prompt, ids):
    """Logprobs of the ids behind the prompt, of one sequence alone."""
    with torch.no_grad():
        logprobs = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    return logprobs.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()


def test_prompts_of_different_lengths_are_sampled_together_as_each_alone(sampler):
    prompts = [sampler.tokenizer.encode("The key fits door 5." * count) for count in (1, 3, 2)]
    replies = sampler.sample([Request(prompt, max_tokens) for prompt, max_tokens in zip(prompts, (8, 1, 5), strict=True)])
    for prompt, reply, most in zip(prompts, replies, (8, 1, 5), strict=True):
        assert len(reply.ids) == len(reply.logprobs)
        ended = reply.ids[-1] == sampler.tokenizer.eos_token_id
        assert reply.finish_reason == ("stop" if ended else "length")
        assert ended or len(reply.ids) == most
        assert reply.logprobs == pytest.approx(rescored(sampler.model, prompt, reply.ids), abs=TOLERANCE)


def test_the_base_model_calls_the_tool_and_uses_the_key_now_and_then(sampler):
    prompt = sampler.tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    replies = sampler.sample([Request(prompt, 16)] * 256)
    texts = [sampler.tokenizer.decode(reply.ids, skip_special_tokens=True) for reply in replies]
    form = '<tool_call>{"name": "open", "arguments": {"door": 0}}</tool_call>'
    calls = [form.replace("0", str(door)) for door in range(1, doors.DOORS + 1)]
    assert np.mean([text in calls for text in texts]) > 0.9
    assert 0.25 < np.mean([text == calls[4] for text in texts]) < 0.75


def test_the_engine_tells_ids_logprobs_and_the_call(engine, sampler):
    prompt = post(f"{engine}/tokenize", messages=MESSAGES)["tokens"]
    whole = post(f"{engine}/v1/chat/completions", messages=MESSAGES, temperature=0)
    by_ids = post(f"{engine}/v1/chat/completions", input_ids=prompt, messages=[], temperature=0)
    choice = whole["choices"][0]
    assert choice["prompt_token_ids"] == prompt
    assert by_ids["choices"][0]["response_token_ids"] == choice["response_token_ids"]
    assert choice["finish_reason"] == "tool_calls"
    function = choice["message"]["tool_calls"][0]["function"]
    assert function["name"] == "open"
    assert json.loads(function["arguments"])["door"] in range(1, doors.DOORS + 1)
    told = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    assert told == pytest.approx(rescored(sampler.model, prompt, choice["response_token_ids"]), abs=TOLERANCE)
    assert whole["usage"]["completion_tokens"] == len(choice["response_token_ids"])
    # What it said goes back as it was sampled.
    answered = [*MESSAGES, {**choice["message"]}, {"role": "tool", "content": "Locked."}]
    ids = post(f"{engine}/tokenize", messages=answered)["tokens"]
    assert ids[: len(prompt) + len(choice["response_token_ids"])] == [*prompt, *choice["response_token_ids"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": MESSAGES, "stream": True}, "does not stream"),
        ({"input_ids": [5] * 512}, "longer than"),
        ({"input_ids": [5, 100_000]}, "ids from 0"),
        ({"messages": MESSAGES, "temperature": -1}, "temperature"),
        ({"messages": MESSAGES, "max_tokens": -1}, "max_tokens"),
        ({"messages": 7}, ""),
        ({"messages": [{}]}, ""),
    ],
)
def test_the_engine_refuses_what_it_cannot_do_and_goes_on(engine, body, message):
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(f"{engine}/v1/chat/completions", **body)
    assert raised.value.code == 400
    assert message in json.load(raised.value)["message"]
    assert post(f"{engine}/v1/chat/completions", messages=MESSAGES)["choices"]


def test_a_batch_that_fails_is_told_to_each_call_and_the_next_one_is_served(folder):
    serving = Engine(folder)
    sample = serving.sampler.sample
    asked = threading.Event()

    def broken(requests):
        asked.wait(10)
        raise RuntimeError("out of memory")

    serving.sampler.sample = broken
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(serving.chat, {"messages": MESSAGES}) for _ in range(3)]
        asked.set()
        for call in calls:
            with pytest.raises(Failed) as raised:
                call.result(timeout=20)
            assert "out of memory" in str(raised.value.__cause__)
    serving.sampler.sample = sample
    assert serving.chat({"messages": MESSAGES})["choices"]


def test_the_engine_samples_by_the_weights_that_it_was_given(engine, folder, sampler, tmp_path):
    changed = Sampler(folder)
    with torch.no_grad():
        changed.model.model.layers[0].self_attn.o_proj.weight.mul_(2)
    shutil.copytree(folder, tmp_path / "weights")
    changed.model.save_pretrained(tmp_path / "weights")
    post(f"{engine}/update_weights_from_disk", model_path=str(tmp_path / "weights"), weight_version="7")
    try:
        reply = post(f"{engine}/v1/chat/completions", messages=MESSAGES)
        choice = reply["choices"][0]
        told = [entry["logprob"] for entry in choice["logprobs"]["content"]]
        scored = rescored(changed.model, choice["prompt_token_ids"], choice["response_token_ids"])
        assert reply["metadata"]["weight_version"] == "7"
        assert told == pytest.approx(scored, abs=TOLERANCE)
        before = rescored(sampler.model, choice["prompt_token_ids"], choice["response_token_ids"])
        assert np.abs(np.subtract(told, before)).max() > 10 * TOLERANCE
    finally:
        post(f"{engine}/update_weights_from_disk", model_path=str(folder), weight_version="0")


def group_of(sampler, rewards):
    """A group of one-call sessions as the stream would have it, sampled by the sampler's weights."""
    prompt = sampler.tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    replies = sampler.sample([Request(prompt, 16)] * len(rewards))
    traces = [
        Trace(
            prompt_ids=np.array(prompt, np.int32),
            response_ids=np.array(reply.ids, np.int32),
            loss_mask=np.ones(len(reply.ids), np.uint8),
            logprobs=np.array(reply.logprobs, np.float32),
            spans=(),
        )
        for reply in replies
    ]
    return [trajectory(reward, [trace]) for reward, trace in zip(rewards, traces, strict=True)]


def test_a_step_makes_what_was_rewarded_more_likely(folder):
    own = Sampler(folder)
    group = group_of(own, [1.0, 0.0, 0.0, 0.0])
    best = group[0].traces[0]
    optimizer = torch.optim.AdamW(own.model.parameters(), lr=1e-3)
    first = grpo.step(own.model, optimizer, [group])
    again = grpo.step(own.model, optimizer, [group])
    assert first["logprob_gap"] < TOLERANCE < again["logprob_gap"]
    assert first["tokens"] == sum(len(one.traces[0].response_ids) for one in group)
    scored = rescored(own.model, best.prompt_ids.tolist(), best.response_ids.tolist())
    assert sum(scored) > best.logprobs.sum()


def test_groups_of_equal_rewards_change_nothing(folder):
    own = Sampler(folder)
    optimizer = torch.optim.AdamW(own.model.parameters(), lr=1e-3)
    before = [parameter.clone() for parameter in own.model.parameters()]
    assert grpo.step(own.model, optimizer, [group_of(own, [1.0, 1.0, 1.0])]) is None
    assert all(torch.equal(*pair) for pair in zip(before, own.model.parameters(), strict=True))


def test_a_curve_tells_when_its_reward_was_twice_its_start():
    rewards = [0.2, 0.1, 0.3, 0.5, 0.3, 0.5, 0.9, 0.7]
    rows = [
        {"step": at, "seconds": 6.0 * at, "reward": reward, "sessions": 64}
        for at, reward in enumerate(rewards, 1)
    ]
    # The means of three steps, so that a single one does not count: 0.2, 0.3, 0.37, then 0.43.
    found = curves.summary(rows)
    assert (found.steps, found.sessions, found.minutes, found.twice_after) == (8, 512, 0.8, 36.0)
    assert (found.start, found.end, found.mean) == pytest.approx((0.2, 0.7, 0.4375))
    assert found.change == pytest.approx(7 * linear_regression(range(8), rewards).slope)
    assert not found.flat
    assert curves.summary([{**row, "reward": 0.2 + 0.01 * (row["step"] % 2)} for row in rows]).flat
    assert curves.summary(rows[:5]).twice_after is None
    assert "| seed 1 | 0.8 | 8 | 512 | 0.20 | 0.70 | 36 s | +0.66 ± 0.31 |" in report.table({"seed 1": rows})
    assert report.picture({"seed 1": rows}).count("<polyline") == 1


class WonMesh(contextlib.ExitStack):
    """Client, policy client and stream of a mesh whose every game is won; a minute passes with each batch."""

    seconds = 0.0

    def __init__(self, *_, **__):
        super().__init__()

    def submit(self, _):
        pass

    def stream(self, *_, **__):
        return self

    def ack(self, _):
        pass

    def next(self, timeout_s):
        WonMesh.seconds += 60
        assert WonMesh.seconds < 60 * 60, "its time is over"
        trace = Trace(*(np.ones(2, kind) for kind in ("<i4", "<i4", "u1", "<f4")), spans=())
        return replace(read_batch(TrajectoryBatch(), None), trajectories=[trajectory(1.0, [trace])] * 2)


def test_a_run_ends_with_its_time_where_nothing_is_left_to_learn(folder, monkeypatch, tmp_path):
    for name in ("Client", "PolicyClient"):
        monkeypatch.setattr(training, name, WonMesh)
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: WonMesh.seconds))
    rows = []
    train(Site("", "", "", "", tmp_path), folder, Options(seed=1, minutes=21), rows.append)
    assert [row["seconds"] for row in rows[-2:]] == [20 * 60, 24 * 60]


def played(where):
    """How sessions ended, by outcome, calls and reward, and the last words of those that ended early."""
    with Client(where.rollout_url, where.trajectory_url) as client:
        ended, early = Counter(), []
        for task in client.list_tasks():
            for session in client.list_sessions(task.task_id):
                with contextlib.suppress(PolarError):
                    one = client.get_trajectory(session.session_id)
                    ended[one.outcome, one.stats.calls, one.reward] += 1
                    if one.stats.calls < doors.TO_OPEN and len(early) < 5:
                        early.append([one.failure, *client.export_session(one.session_id, "messages")[-1:]])
    return f"{ended}\n{early}"


def test_the_first_step_of_the_whole_in_a_real_mesh(folder):
    for _ in range(3):
        rows = []
        with site(folder) as where:
            train(where, folder, Options(seed=3, minutes=0), rows.append)
            published = (where.folder / "weights/model.safetensors").exists()
            start = curves.summary(rows).start
            assert 0.05 < start < 0.4, played(where)
        # One step in some hundred has only groups whose sessions all fared alike, and trains nothing.
        if "logprob_gap" in rows[-1]:
            break
    assert published
    assert not where.folder.exists()
    # The steps before the first one that trains are the base model's.
    assert len(rows) == curves.WINDOW
    for row in rows:
        assert row["sessions"] == GROUP_SIZE * GROUPS_A_STEP
        # An answer without a call ends a game early.
        assert 2 * row["sessions"] <= row["calls"] <= doors.CALLS_MAX * row["sessions"]
        assert row["lag"] == 0
    # The engine's logprobs are those of the trainer's weights.
    assert rows[-1]["logprob_gap"] < TOLERANCE


def test_houses_are_drawn_by_the_seed():
    assert (
        doors.draw_keys(random.Random(1))
        == doors.draw_keys(random.Random(1))
        != doors.draw_keys(random.Random(2))
    )
