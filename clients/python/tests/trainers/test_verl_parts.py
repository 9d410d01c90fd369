"""The parts of the bridge to verl: traces as rows, chats as ids, and what a task may not say."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from aiohttp import ClientSession
from polar_mesh.bridges.verl import PolarAgentLoop
from polar_mesh.bridges.verl.chat import Chat, Refused
from polar_mesh.bridges.verl.engine import EngineDoor
from polar_mesh.bridges.verl.rows import Played, Window, rows
from polar_mesh.images import Image
from support import trace, trajectory
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput
from verl_setup import config, doors

import base

WIDE = Window(64, 64)
EMPTY = 9
CONTEXT = 512


def played(traces, **fields):
    return Played(replace(trajectory(1.0, traces), **fields), run_s=2.0, evaluate_s=0.5)


def test_a_trace_is_a_row_as_it_is():
    one = trace([1, 1, 0, 1], prompt=3)
    (row,) = rows(played([one]), WIDE, EMPTY, every=False)
    assert row.prompt_ids == one.prompt_ids.tolist()
    assert row.response_ids == one.response_ids.tolist()
    assert row.response_mask == [1, 1, 0, 1]
    assert row.response_logprobs == pytest.approx(one.logprobs.tolist())
    assert row.reward_score == 1.0
    assert (row.metrics.generate_sequences, row.metrics.compute_score) == (2.0, 0.5)


def test_a_prompt_that_is_too_long_goes_on_in_the_response_and_is_not_trained():
    one = trace([1, 0, 1], prompt=5)
    (row,) = rows(played([one]), Window(2, 64), EMPTY, every=False)
    assert row.prompt_ids + row.response_ids == [*one.prompt_ids.tolist(), *one.response_ids.tolist()]
    assert len(row.prompt_ids) == 2
    assert row.response_mask == [0, 0, 0, 1, 0, 1]
    assert row.response_logprobs[:3] == [0, 0, 0]
    assert row.extra_fields["reward_extra_info"]["polar_trained_tokens_cut_off"] == 0


def test_what_lies_behind_the_window_is_cut_off_and_counted():
    one = trace([1, 1, 1, 1], prompt=5)
    (row,) = rows(played([one]), Window(2, 5), EMPTY, every=False)
    assert row.response_ids == [*one.prompt_ids.tolist()[2:], *one.response_ids.tolist()[:2]]
    assert row.response_mask == [0, 0, 0, 1, 1]
    assert row.extra_fields["reward_extra_info"]["polar_trained_tokens_cut_off"] == 2
    (row,) = rows(played([one]), Window(2, 2), EMPTY, every=False)
    assert row.response_mask == [0, 0]
    assert row.extra_fields["reward_extra_info"]["polar_trained_tokens_cut_off"] == 4


def test_the_trace_with_most_trained_ids_is_the_row_or_the_last_of_all():
    short, long = trace([1, 1]), trace([1, 1, 1])
    (row,) = rows(played([long, short]), WIDE, EMPTY, every=False)
    assert row.response_ids == long.response_ids.tolist()
    assert row.extra_fields["reward_extra_info"] == {
        "polar_traces_left_out": 1,
        "polar_trained_tokens_left_out": 2,
        "polar_trained_tokens_cut_off": 0,
    }
    both = rows(played([long, short]), WIDE, EMPTY, every=True)
    assert [len(one.response_ids) for one in both] == [2, 3]
    assert both[1].extra_fields["reward_extra_info"]["polar_traces_left_out"] == 0


def test_traces_count_with_rewards_of_their_own():
    low = replace(trace([1, 1, 1]), reward=0.25)
    assert [one.reward_score for one in rows(played([low, trace([1])]), WIDE, EMPTY, every=True)] == [1.0, 0.25]


def test_a_session_without_a_reward_is_no_row():
    assert rows(played([trace([1])], reward=None), WIDE, EMPTY, every=False) == []
    assert rows(played([], reward=None), WIDE, EMPTY, every=True) == []


def test_a_reward_for_no_trained_id_is_told_by_a_row_that_trains_nothing():
    (row,) = rows(played([trace([0, 0])]), WIDE, EMPTY, every=True)
    assert (row.prompt_ids, row.response_ids, row.response_mask) == ([EMPTY], [EMPTY], [0])
    assert row.reward_score == 1.0


def test_images_are_refused():
    one = replace(trace([1]), images=(Image("d", "image/png", "", "m", 0, 1),))
    with pytest.raises(ValueError, match="has images"):
        rows(played([one]), WIDE, EMPTY, every=False)


@pytest.fixture(scope="module")
def model():
    return base.base_model()


@pytest.fixture(scope="module")
def tokenizer(model):
    return AutoTokenizer.from_pretrained(model)


@pytest.fixture(scope="module")
def chat(tokenizer):
    return Chat(tokenizer, "hermes", {}, CONTEXT)


MESSAGES = [{"role": "user", "content": doors.instruction([1, 2, 3, 4, 5])}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "open", "arguments": '{"door": 3}'}}


def test_messages_are_what_the_template_makes_of_them(chat, tokenizer):
    told = [*MESSAGES, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    parsed = {**CALL, "function": {"name": "open", "arguments": {"door": 3}}}
    meant = [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": [parsed]}]
    expected = tokenizer.apply_chat_template(meant, add_generation_prompt=True, return_dict=False)
    assert chat.prompt({"messages": told, "tools": [doors.TOOL]}) == expected
    in_parts = [{"role": "user", "content": [{"type": "text", "text": MESSAGES[0]["content"]}]}]
    assert chat.prompt({"messages": in_parts}) == chat.prompt({"messages": MESSAGES})
    assert chat.prompt({"messages": told, "input_ids": [5, 6]}) == [5, 6]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", True),
        ("n", 2),
        ("response_format", {"type": "json_object"}),
        ("tool_choice", "required"),
        ("logit_bias", {"5": 1}),
    ],
)
def test_what_verls_servers_cannot_be_asked_is_refused_by_its_name(chat, field, value):
    with pytest.raises(Refused, match=field):
        chat.sampling({field: value}, [1])


def test_media_are_refused(chat):
    content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    with pytest.raises(Refused, match="images"):
        chat.prompt({"messages": [{"role": "user", "content": content}]})


def test_a_reply_has_the_room_that_the_window_leaves(chat):
    assert chat.sampling({}, [1] * 500)["max_tokens"] == 12
    assert chat.sampling({"max_tokens": 400}, [1] * 500)["max_tokens"] == 12
    assert chat.sampling({"max_completion_tokens": 5, "stop": ["x"]}, [1])["max_tokens"] == 5
    assert chat.sampling({"stop": ["x"]}, [1])["stop"] == ["x"]
    with pytest.raises(Refused, match="longer than the model's context length"):
        chat.sampling({}, [1] * CONTEXT)


class Servers:
    """Answers as they come: what ``generate`` was asked for is not the matter here."""

    def __init__(self, *outputs):
        self.outputs = list(outputs)

    async def generate(self, request_id, **_):
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output


def answers(chat, servers, *bodies):
    """Status and answer for each body, over HTTP."""

    async def ask():
        door = EngineDoor(servers, chat)
        assert await door.open("127.0.0.1", 0)
        try:
            # Who comes second leaves the port to the first.
            assert not await EngineDoor(servers, chat).open("127.0.0.1", door.port)
            async with ClientSession(f"http://127.0.0.1:{door.port}") as session:
                told = []
                for body in bodies:
                    async with session.post("/v1/chat/completions", json=body) as answer:
                        told.append((answer.status, await answer.json()))
                return told
        finally:
            await door.close()

    return asyncio.run(ask())


def test_the_door_answers_as_an_engine_with_the_ids_of_verls_servers(chat, tokenizer):
    said = tokenizer.encode('<tool_call>{"name": "open", "arguments": {"door": 3}}</tool_call>', add_special_tokens=False)
    ids = [*said, tokenizer.eos_token_id]
    logprobs = np.linspace(-2, -1, len(ids)).tolist()
    output = TokenOutput(token_ids=ids, log_probs=logprobs, stop_reason="completed", extra_fields={"min_global_steps": 3})
    body = {"model": "policy", "messages": MESSAGES, "tools": [doors.TOOL]}
    ((status, told),) = answers(chat, Servers(output), body)
    assert status == 200
    (choice,) = told["choices"]
    assert choice["response_token_ids"] == ids
    assert choice["prompt_token_ids"] == chat.prompt(body)
    assert [one["logprob"] for one in choice["logprobs"]["content"]] == pytest.approx(logprobs)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "open", "arguments": '{"door": 3}'}
    assert told["metadata"] == {"weight_version": "3"}
    assert told["usage"]["completion_tokens"] == len(ids)


def test_the_door_tells_whose_fault_a_failure_is(chat):
    broken_off = TokenOutput(token_ids=[], log_probs=[], stop_reason="aborted")
    servers = Servers(broken_off, RuntimeError("the actor died"))
    body = {"messages": MESSAGES}
    told = answers(chat, servers, {"messages": MESSAGES, "n": 3}, body, body, {"messages": 5}, {"input_ids": [1] * CONTEXT})
    assert [status for status, _ in told] == [400, 503, 500, 400, 400]
    assert told[0][1]["message"].startswith("n:")
    assert "the actor died" in told[2][1]["message"]


def agent_loop(model, tokenizer, tmp_path, **settings):
    whole = config(model, tmp_path / "loops.yaml")
    wrapped = DictConfigWrap(whole), None, tokenizer, None, RLHFDataset, DictConfigWrap(whole.data)
    return PolarAgentLoop(*wrapped, **{"task": lambda row: {}, **settings})


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k", "seed_base"])
def test_a_task_that_says_how_it_is_sampled_is_refused(model, tokenizer, tmp_path, name):
    loop = agent_loop(model, tokenizer, tmp_path, task=lambda row: {"sampling": {name: 1}})
    with pytest.raises(ValueError, match=f"sampling.{name}"):
        asyncio.run(loop.run({"temperature": 1.0}))


def test_settings_that_cannot_be_are_refused(model, tokenizer, tmp_path):
    for settings, message in [
        ({"task": "verl_setup"}, "module:function"),
        ({"task": "verl_setup:nothing"}, "module:function"),
        ({"traces": "some"}, "longest or all"),
        ({"tries": 0}, "at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            agent_loop(model, tokenizer, tmp_path, **settings)
    with pytest.raises(ValueError, match="repetition_penalty"):
        asyncio.run(agent_loop(model, tokenizer, tmp_path).run({"repetition_penalty": 1.1}))
