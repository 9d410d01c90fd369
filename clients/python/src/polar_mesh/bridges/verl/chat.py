"""Between the chats of the mesh and verl's ids: the model's chat template one way, verl's parsers of tool calls the other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from verl.experimental.agent_loop.tool_parser import ToolParser
from verl.workers.rollout.replica import TokenOutput

Body = Mapping[str, Any]

#: What of a request goes on to verl's servers, which know these names, both vLLM's and SGLang's.
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "stop", "stop_token_ids")
#: What verl's servers could not be asked.
_NOT_OFFERED = ("stream", "response_format", "logit_bias", "min_tokens", "ignore_eos")


class Refused(Exception):
    """The request's fault: 400 with this message."""


class Unanswered(Exception):
    """The rollout server gave up on the request, as for an update of its weights: 503, to be asked again."""


class Chat:
    """``ids_max``: prompt and reply together."""

    def __init__(self, tokenizer: Any, tool_format: str, template_settings: Body, ids_max: int) -> None:
        self.tokenizer = tokenizer
        self.ids_max = ids_max
        self._parser = ToolParser.get_tool_parser(tool_format, tokenizer)
        self._template_settings = template_settings

    def prompt(self, body: Body) -> list[int]:
        """The ids of a request: given, of a text, or of messages by the chat template. Raises Refused."""
        given = body.get("input_ids")
        if given:
            return list(given)
        if "messages" not in body:
            return self.tokenizer.encode(body.get("prompt", ""), add_special_tokens=bool(body.get("add_special_tokens")))
        return self.tokenizer.apply_chat_template(
            [_for_template(one) for one in body["messages"]],
            tools=body.get("tools") or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **{**self._template_settings, **(body.get("chat_template_kwargs") or {})},
        )

    def sampling(self, body: Body, prompt_ids: Sequence[int]) -> dict[str, Any]:
        """For ``LLMServerClient.generate``. Raises Refused for what it cannot be asked."""
        for name in _NOT_OFFERED:
            if body.get(name):
                raise Refused(f"{name}: verl's rollout servers cannot be asked for it")
        if (body.get("n") or 1) != 1:
            raise Refused("n: one reply a request")
        if body.get("tool_choice") not in (None, "auto", "none"):
            raise Refused("tool_choice: auto or none")
        room = self.ids_max - len(prompt_ids)
        if room < 1:
            raise Refused(
                f"The input ({len(prompt_ids)} tokens) is longer than the model's context length ({self.ids_max} tokens)."
            )
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or room
        given = {name: body[name] for name in _SAMPLING if body.get(name) is not None}
        if self._parser.stop_token_ids and body.get("tools"):
            given["stop_token_ids"] = [*(given.get("stop_token_ids") or []), *self._parser.stop_token_ids]
        return {**given, "max_tokens": min(int(limit), room), "logprobs": True}

    async def reply(self, body: Body, prompt_ids: Sequence[int], max_tokens: int, output: TokenOutput) -> dict[str, Any]:
        """The answer, in SGLang's form. Raises Unanswered for one that was broken off."""
        if output.stop_reason in ("aborted", "abort") or not output.token_ids:
            raise Unanswered("the rollout server broke the reply off")
        ids, logprobs = output.token_ids, output.log_probs or []
        message = await self._message(body, ids)
        finish_reason = "tool_calls" if message["tool_calls"] else "length" if len(ids) >= max_tokens else "stop"
        texts = [self.tokenizer.decode([one]) for one in ids]
        content = [{"token": text, "logprob": one, "top_logprobs": []} for text, one in zip(texts, logprobs, strict=False)]
        version = output.extra_fields.get("min_global_steps", output.extra_fields.get("global_steps"))
        return {
            "id": uuid.uuid4().hex,
            "object": "chat.completion",
            "model": body.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": {"content": content},
                    "finish_reason": finish_reason,
                    "prompt_token_ids": list(prompt_ids),
                    "response_token_ids": list(ids),
                }
            ],
            "usage": {
                "prompt_tokens": len(prompt_ids),
                "completion_tokens": len(ids),
                "total_tokens": len(prompt_ids) + len(ids),
            },
            "metadata": {"weight_version": "" if version is None else str(version)},
        }

    async def _message(self, body: Body, ids: list[int]) -> dict[str, Any]:
        text, calls = self.tokenizer.decode(ids, skip_special_tokens=True), []
        if body.get("tools") and body.get("tool_choice") != "none":
            _, calls = found = await self._parser.extract_tool_calls(ids)
            if calls:
                text = _without_special(self.tokenizer, found[0])
        told = [
            {
                "id": f"call_{uuid.uuid4().hex[:24]}",
                "index": index,
                "type": "function",
                "function": {"name": one.name, "arguments": one.arguments},
            }
            for index, one in enumerate(calls)
        ]
        return {"role": "assistant", "content": text or None, "tool_calls": told or None}


def _without_special(tokenizer: Any, text: str) -> str:
    """Parsers leave the end token in what they leave of the text."""
    for token in tokenizer.all_special_tokens:
        text = text.replace(token, "")
    return text.strip()


def _for_template(message: Body) -> dict[str, Any]:
    """As chat templates want them, and engines give them: texts for lists of them, and arguments as what they say."""
    content = message.get("content")
    if isinstance(content, list):
        if any(part.get("type") != "text" for part in content):
            raise Refused("messages: images and other media are not brought to verl")
        content = "".join(part["text"] for part in content)
    calls = [_call_for_template(one) for one in message.get("tool_calls") or []]
    return {**message, "content": content or "", **({"tool_calls": calls} if calls else {})}


def _call_for_template(call: Body) -> dict[str, Any]:
    function = dict(call["function"])
    if isinstance(function.get("arguments"), str):
        function["arguments"] = json.loads(function["arguments"] or "{}")
    return {**call, "function": function}
