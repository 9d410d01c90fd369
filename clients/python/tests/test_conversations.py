"""Conversations of a session from its calls, where the harness does not send thinking back."""

from __future__ import annotations

import json

import export_mesh
import pytest
from export_mesh import Mesh, made_messages
from support import Server

from polar_mesh import Client
from polar_mesh.export import export
from polar_mesh.export.conversations import conversations

TURNS = 4


def session(reply_of, sent_back_of):
    """The lines of one conversation: how turn i's reply was recorded, and how it stands in later requests."""
    lines = []
    history = [{"role": "user", "content": "Go on."}]
    for turn in range(TURNS):
        common = {"call_id": f"c{turn}", "end_seq": turn, "role": "main", "trainable": True, "tools": None}
        line = {**common, "finish_reason": "stop", "messages": list(history), "reply": reply_of(turn)}
        lines.append(line)
        history += [sent_back_of(turn), {"role": "user", "content": f"And then {turn}?"}]
    return lines


def said(turn, **more):
    return {"role": "assistant", "content": f"answer {turn}", **more}


def parsed(turn):
    return said(turn, reasoning_content=f"thinks {turn}")


def in_the_text(turn):
    return {"role": "assistant", "content": f"<think>thinks {turn}</think>\n\nanswer {turn}"}


def calling(turn, **more):
    call = {"id": f"t{turn}", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    return {"role": "assistant", "tool_calls": [call], **more}


@pytest.mark.parametrize(
    ("reply_of", "sent_back_of"),
    [
        (parsed, parsed),
        (parsed, said),
        (in_the_text, in_the_text),
        (in_the_text, said),
        (lambda turn: calling(turn, content="", reasoning="thinks"), lambda turn: calling(turn, content=None)),
    ],
)
def test_a_conversation_is_one_with_each_reply_as_it_was_sampled(reply_of, sent_back_of):
    (found,) = conversations(session(reply_of, sent_back_of))
    replies = [one for one in found.messages if one["role"] == "assistant"]
    sampled = [one["reply"] for one in session(reply_of, sent_back_of)]
    assert found.call_id == f"c{TURNS - 1}"
    assert [one["content"] for one in replies] == [one["content"] for one in sampled]
    assert [one["reasoning_content"] for one in replies] == [
        one.get("reasoning_content") or one.get("reasoning") for one in sampled
    ]


def test_another_answer_is_another_conversation():
    lines = session(parsed, said)
    other = {**lines[1], "call_id": "other", "end_seq": TURNS, "reply": said("of another kind")}
    found = conversations([*lines, other])
    assert [one.call_id for one in found] == [f"c{TURNS - 1}", "other"]
    # What both go on from is the same, thinking included.
    assert [one.messages[1]["reasoning_content"] for one in found] == ["thinks 0"] * 2


def test_the_last_of_equal_answers_stands_for_them():
    lines = session(parsed, said)[:1]
    again = {**lines[0], "call_id": "again", "end_seq": 1, "reply": said(0, reasoning_content="thinks anew")}
    (found,) = conversations([*lines, again])
    assert (found.call_id, found.messages[-1]["reasoning_content"]) == ("again", "thinks anew")


def test_half_a_character_is_replaced_wherever_it_stands():
    half, mark = "\ud83d", "\ufffd"
    call = {"id": half, "function": {"name": f"add{half}", "arguments": {half: [half, 1]}}}
    parts = [{"type": "text", "text": f"1{half}"}, {"type": "text", "text": "2 \U0001f600"}]
    image = [{"type": "image_url", "image_url": {"url": half}}]
    lines = session(said, said)[:1]
    lines[0]["messages"] = [{"role": "user", "content": parts}, {"role": "user", "content": image, "name": half}]
    lines[0]["reply"] = said(0, reasoning_content=half, tool_calls=[call])
    lines[0]["tools"] = [{"function": {"name": half, "parameters": {half: {}}}}]
    (found,) = conversations(lines)
    assert found.messages[0]["content"] == f"1{mark}2 \U0001f600"
    assert found.messages[1]["name"] == found.messages[2]["reasoning_content"] == mark
    assert found.messages[2]["tool_calls"][0]["function"] == {"name": f"add{mark}", "arguments": f'{{"{mark}": ["{mark}", 1]}}'}
    assert found.tools == json.dumps(lines[0]["tools"]).replace("\\ud83d", mark)
    assert half not in json.dumps(found.messages, ensure_ascii=False)


#: What the proxy takes of a message and hands on as it is.
ODD = [
    {"name": 3, "tool_call_id": ["t1"], "reasoning": [1]},
    {"tool_calls": "add"},
    {"tool_calls": [1, {"id": 2, "type": 3, "function": "add"}]},
    {"tool_calls": [{"function": {"name": 4}}], "reasoning_content": [{"type": "text"}]},
]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(("what", "rows"), [("sft", 4), ("preference", 1)])
def test_odd_messages_of_one_session_stop_no_export(stack, tmp_path, monkeypatch, what, rows, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")

    def with_odd(session_id):
        first, second, side = made_messages(session_id)
        said = [{"role": "user", "content": "Go on.", **odd} for odd in ODD if session_id == "s0-3"]
        return [first, {**second, "messages": [*second["messages"], *said]}, side]

    monkeypatch.setattr(export_mesh, "made_messages", with_odd)
    server = Server(Mesh(tasks=1).register)
    stack.callback(server.stop)
    client = Client(server.url, server.url, timeout_s=10)
    stack.callback(client.close)
    assert export(client, tmp_path / "out", what=what, format=format, tasks=["t0"]).rows == rows


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_is_no_text_in_a_message_becomes_one(odd):
    lines = session(said, said)[:1]
    lines[0]["messages"] = [{"role": "user", "content": "Go on.", **odd}]
    (found,) = conversations(lines)
    message = found.messages[0]
    calls = message["tool_calls"] or []
    texts = [message[key] for key in ("reasoning_content", "tool_call_id", "name")]
    texts += [text for call in calls for text in (call["id"], call["type"], *call["function"].values())]
    assert all(text is None or isinstance(text, str) for text in texts)
    assert len(calls) == sum(isinstance(call, dict) for call in odd.get("tool_calls", []))


def test_a_reply_that_the_harness_had_begun_is_one_message_with_its_beginning():
    asked = {"role": "user", "content": "As JSON."}
    begun = {"role": "assistant", "content": [{"type": "text", "text": '{"a"'}]}
    answer = {"role": "assistant", "content": ": 1}"}
    whole = {"role": "assistant", "content": '{"a": 1}'}
    common = {"finish_reason": "stop", "role": "main", "trainable": True, "tools": None}
    calls = [
        {**common, "call_id": "c0", "end_seq": 0, "messages": [asked, begun], "reply": answer, "goes_on": True},
        {**common, "call_id": "c1", "end_seq": 1, "messages": [asked, whole, asked], "reply": answer},
    ]
    (first,) = conversations(calls[:1])
    assert [(one["role"], one["content"]) for one in first.messages] == [("user", "As JSON."), ("assistant", '{"a": 1}')]
    assert [one.call_id for one in conversations(calls)] == ["c1"]
