"""Samples replies for several prompts at once, with the logprob of each token under the policy that sampled it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@dataclass
class Reply:
    """What was sampled: ids, and the natural logarithm of each one's probability at the request's temperature."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    #: stop: the end token is the last one; length: ``max_tokens`` was reached.
    finish_reason: str = "length"


@dataclass(frozen=True)
class Request:
    prompt: Sequence[int]
    max_tokens: int
    #: 0: the most probable token each time.
    temperature: float = 1.0


class Sampler:
    """A folder's model and tokenizer. Not thread-safe."""

    def __init__(self, folder: Path | str, weight_version: str = "0") -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.load(folder, weight_version)

    def load(self, folder: Path | str, weight_version: str) -> None:
        """Take the weights of a folder; they sample all that comes after."""
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.weight_version = weight_version

    @torch.inference_mode()
    def sample(self, requests: Sequence[Request]) -> list[Reply]:
        """Replies in the order of the requests; prompts are padded at their left to one length."""
        replies = [Reply() for _ in requests]
        length = max(len(one.prompt) for one in requests)
        ids = torch.full((len(requests), length), self.tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, one in enumerate(requests):
            ids[row, length - len(one.prompt) :] = torch.tensor(one.prompt)
            mask[row, length - len(one.prompt) :] = 1
        heat = torch.tensor([one.temperature or 1.0 for one in requests]).unsqueeze(1)
        greedy = torch.tensor([one.temperature == 0 for one in requests])
        live = list(range(len(requests)))
        past = None
        position = mask.cumsum(1).sub(1).clamp(min=0)
        while live:
            out = self.model(
                ids, attention_mask=mask, position_ids=position, past_key_values=past, use_cache=True
            )
            past = out.past_key_values
            logprobs = (out.logits[:, -1] / heat).log_softmax(-1)
            drawn = torch.multinomial(logprobs.exp(), 1)
            ids = torch.where(greedy.unsqueeze(1), logprobs.argmax(-1, keepdim=True), drawn)
            told = logprobs.gather(1, ids)[:, 0].tolist()
            live = [row for row in live if self._add(replies[row], requests[row], int(ids[row]), told[row])]
            mask = torch.cat([mask, mask.new_ones(len(requests), 1)], 1)
            position = position[:, -1:] + 1
        return replies

    def _add(self, reply: Reply, request: Request, token: int, logprob: float) -> bool:
        """Whether the reply goes on."""
        reply.ids.append(token)
        reply.logprobs.append(logprob)
        if token == self.tokenizer.eos_token_id:
            reply.finish_reason = "stop"
            return False
        return len(reply.ids) < request.max_tokens
