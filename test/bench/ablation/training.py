"""One pass over stored groups in plain torch: what it takes, and the gradient that comes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from polar_mesh import rewards
from polar_mesh.torch import MicroBatch, micro_batches, token_logprobs
from traces import Groups
from transformers import AutoModelForCausalLM, PreTrainedModel

#: Ids of a micro-batch, filling included.
TOKENS_MAX = 2_048
LEARNING_RATE = 5e-4


@dataclass(frozen=True)
class Epoch:
    #: One for each micro-batch.
    updates: int
    #: Wall clock, from traces in memory to the last update.
    seconds: float
    #: CPU of the same.
    cpu_seconds: float


@dataclass(frozen=True)
class Gradient:
    """Of all groups at once, by the weights that sampled them."""

    #: float32[parameters].
    values: torch.Tensor
    #: Largest |logprob now - logprob on record| of a trained id.
    logprob_gap: float


def load(base: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)


def epoch(base: Path, groups: Groups) -> Epoch:
    """Train the base model by each sequence once, with an update of the weights after each micro-batch."""
    model = load(base)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    started, cpu_started = time.perf_counter(), time.process_time()
    batches = steps(groups)
    for batch in batches:
        optimizer.zero_grad()
        loss(batch, _logprobs(model, batch)).backward()
        optimizer.step()
    return Epoch(len(batches), time.perf_counter() - started, time.process_time() - cpu_started)


def gradient(base: Path, groups: Groups) -> Gradient:
    """Add up the micro-batches' gradients, as a trainer does that makes one update of all groups."""
    model, gap = load(base), 0.0
    for batch in steps(groups):
        logprobs = _logprobs(model, batch)
        gap = max(gap, float(((logprobs.detach() - batch.logprobs) * batch.loss_mask).abs().max()))
        loss(batch, logprobs).backward()
    return Gradient(torch.cat([one.grad.flatten() for one in model.parameters()]), gap)


def steps(groups: Groups) -> list[MicroBatch]:
    """Each session weighs the same, over however many sequences its tokens are spread."""
    samples = rewards.samples(groups, estimator="group_norm", normalise="session")
    return micro_batches(samples, tokens_max=TOKENS_MAX)


def loss(batch: MicroBatch, logprobs: torch.Tensor) -> torch.Tensor:
    ratio = torch.exp((logprobs - batch.logprobs) * batch.loss_mask)
    return -(batch.weights * batch.advantages * ratio).sum()


def _logprobs(model: PreTrainedModel, batch: MicroBatch) -> torch.Tensor:
    return token_logprobs(model(**batch.inputs).logits, batch.input_ids)
