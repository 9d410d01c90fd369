"""Conversations of a session: what was said, from its recorded calls, whichever dialect the harness spoke."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

#: Replies that were never delivered whole.
_DEAD = frozenset({"cancelled", "error", "abort"})
#: Thinking where the engine's parser leaves it in the text.
_THINKING = re.compile(r"^.*</think>\s*", re.DOTALL)
#: A half of a character outside of Unicode's first 65536, which JSON can tell alone (a text cut within an emoji). No
#: encoding has it: files and Arrow refuse it.
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Conversation:
    """The messages of one call with its reply, in the form of ``schema.MESSAGE``."""

    call_id: str
    role: str
    end_seq: int
    messages: tuple[dict[str, Any], ...]
    #: Tool definitions as JSON; None without tools.
    tools: str | None


def conversations(calls: Sequence[Mapping[str, Any]]) -> list[Conversation]:
    """Those that no other one of the session goes on from, by the end of their last call.

    A harness may send a reply back without its thinking: it is the same reply, and stands in the conversation as it was
    sampled. One that the harness had begun is one message with its beginning. Half a character (a lone surrogate) is U+FFFD,
    in messages, tool calls and tools.

    Args:
        calls: Lines of ``Client.export_session(session_id, "messages")``. Calls of frozen models, side calls, those
            whose reply was not delivered whole, and those whose messages are not all recorded give none.
    """
    tree = _Tree()
    usable = sorted(filter(_is_usable, calls), key=lambda one: one["end_seq"])
    found = [tree.add(_conversation(one)) for one in usable]
    return list({end: one for end, one in found if not tree.goes_on(end)}.values())


class _Tree:
    """What was said in a session: a node is a message behind all those before it, whatever the model thought."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, str], int] = {}
        self._parents: set[int] = set()
        self._replies: dict[int, dict[str, Any]] = {}

    def add(self, one: Conversation) -> tuple[int, Conversation]:
        """The node where it ends, and it with the replies of earlier conversations as they were sampled."""
        node = -1
        messages = []
        for message in one.messages[:-1]:
            node = self._below(node, message)
            messages.append(self._replies.get(node, message))
        end = self._below(node, one.messages[-1])
        self._replies[end] = one.messages[-1]
        return end, replace(one, messages=(*messages, one.messages[-1]))

    def goes_on(self, node: int) -> bool:
        return node in self._parents

    def _below(self, node: int, message: Mapping[str, Any]) -> int:
        self._parents.add(node)
        return self._nodes.setdefault((node, _without_thinking(message)), len(self._nodes))


def _without_thinking(message: Mapping[str, Any]) -> str:
    bare = {**message, "reasoning_content": None}
    if message["role"] == "assistant":
        # None and empty beside tool calls: which of them comes back is up to the harness.
        bare["content"] = _THINKING.sub("", message["content"] or "")
    return json.dumps(bare, sort_keys=True)


def main_conversation(found: Sequence[Conversation]) -> Conversation | None:
    """The longest one of the main agent, the last one of several; None where there is none."""
    main = [one for one in found if one.role == "main"]
    return max(main, key=lambda one: (len(one.messages), one.end_seq), default=None)


def _is_usable(call: Mapping[str, Any]) -> bool:
    if call["role"] == "side" or not call["trainable"] or call["finish_reason"] in _DEAD:
        return False
    return call["reply"] is not None and all(message is not None for message in call["messages"])


def _conversation(call: Mapping[str, Any]) -> Conversation:
    said = [_message(_whole(one)) for one in [*call["messages"], call["reply"]]]
    if call.get("goes_on") and len(said) > 1:
        said[-2:] = [_joined(*said[-2:])]
    return Conversation(
        call_id=call["call_id"],
        role=call["role"],
        end_seq=call["end_seq"],
        messages=tuple(said),
        tools=None if call["tools"] is None else json.dumps(_whole(call["tools"]), ensure_ascii=False),
    )


def _joined(begun: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    names = ("content", "reasoning_content")
    return {**reply, **{name: "".join(one[name] or "" for one in (begun, reply)) or None for name in names}}


def _whole(value: Any) -> Any:
    """The same with U+FFFD for each half of a character, at any depth."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _message(body: Mapping[str, Any]) -> dict[str, Any]:
    # What a dialect does not know of a role comes from the harness as it is: calls of a user, a number for a name.
    calls = body.get("tool_calls")
    made = [_tool_call(one) for one in calls if isinstance(one, Mapping)] if isinstance(calls, list) else []
    return {
        "role": str(body.get("role", "")),
        "content": _text(body.get("content")),
        "reasoning_content": _text(body.get("reasoning_content") or body.get("reasoning")),
        "tool_calls": made or None,
        "tool_call_id": _text(body.get("tool_call_id")),
        "name": _text(body.get("name")),
    }


def _text(content: Any) -> str | None:
    """Text parts joined; what has other parts, as JSON."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and all(map(_is_text_part, content)):
        return "".join(part["text"] for part in content)
    return json.dumps(content, ensure_ascii=False)


def _is_text_part(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    told = call.get("function")
    function = told if isinstance(told, Mapping) else {}
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": _text(call.get("id")),
        "type": _text(call.get("type", "function")),
        "function": {"name": _text(function.get("name")), "arguments": text},
    }
