"""Traces as torch tensors, and micro-batches of them for a training step. Only this module imports torch.

    for step in polar_mesh.torch.micro_batches(rewards.samples(batches), tokens_max=16_384):  # or layout="packed"
        step = step.to("cuda")
        ratio = torch.exp(polar_mesh.torch.token_logprobs(model(**step.inputs).logits, step.input_ids) - step.logprobs)
        (-step.weights * step.advantages * ratio).sum().backward()
    optimizer.step()

They are those of ``polar_mesh.arrays``, on the same memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy.typing as npt
import torch
from torch.utils.checkpoint import checkpoint

from . import arrays
from .arrays import Layout
from .batches import Trace
from .samples import Sample

__all__ = ["Layout", "MicroBatch", "TraceTensors", "micro_batches", "pack", "pad", "shared", "tensors", "token_logprobs"]

#: Ids whose logprobs are worked out at once: with 150,000 words of a vocabulary, 0.6 GB of float32.
PART_IDS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class TraceTensors:
    """The columns of a trace: int32[P], int32[R], uint8[R], float32[R]."""

    prompt_ids: torch.Tensor
    response_ids: torch.Tensor
    loss_mask: torch.Tensor
    logprobs: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MicroBatch(arrays.Sequences[torch.Tensor]):
    """Sequences as tensors."""

    @property
    def policy_versions(self) -> torch.Tensor:
        """int64[B, T]: version of the weights that sampled the id; 0 where the engine tells none, -1 where none sampled it.

        Made of the samples' traces when it is asked for.
        """
        return torch.from_numpy(self._policy_versions()).to(self.input_ids.device)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> MicroBatch:
        """The same on a device."""
        moved = {name: tensor.to(device, non_blocking=non_blocking) for name, tensor in _columns(self).items()}
        return replace(self, **moved)


def tensors(trace: Trace | Sample) -> TraceTensors:
    """The trace's columns as tensors on its own memory: nothing is copied.

    They must not be written to, since that memory is the received message (torch has no read-only tensors and cannot
    refuse). ``clone()`` one to change it.
    """
    return TraceTensors(
        shared(trace.prompt_ids), shared(trace.response_ids), shared(trace.loss_mask), shared(trace.logprobs)
    )


def shared(array: npt.NDArray[Any]) -> torch.Tensor:
    """A tensor on the array's memory, read-only or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(array)


def token_logprobs(logits: torch.Tensor, input_ids: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """float32[B, T]: each id's logprob, given those before it; 0 at the first index.

    A part at a time, and anew for the gradient: of [B, T, V] nothing is kept but the logits themselves.

    Args:
        logits: [B, T, V].
        input_ids: int64[B, T].
        temperature: That of the sampling, where the engine's logprobs are after it.
    """
    steps = max(1, PART_IDS // max(1, len(input_ids)))
    parts = zip(logits[:, :-1].split(steps, dim=1), input_ids[:, 1:].split(steps, dim=1), strict=True)
    found = [
        checkpoint(_logprobs, *part, temperature, use_reentrant=False, preserve_rng_state=False) for part in parts
    ]
    return torch.nn.functional.pad(torch.cat(found, dim=1), (1, 0))


def _logprobs(logits: torch.Tensor, input_ids: torch.Tensor, temperature: float) -> torch.Tensor:
    scores = torch.log_softmax(logits.float() / temperature, dim=-1)
    return scores.gather(-1, input_ids[..., None]).squeeze(-1)


def micro_batches(
    samples: Sequence[Sample], *, tokens_max: int, layout: Layout = "padded", pad_id: int = 0
) -> list[MicroBatch]:
    """As ``polar_mesh.arrays.micro_batches``."""
    return [_of(one) for one in arrays.micro_batches(samples, tokens_max=tokens_max, layout=layout, pad_id=pad_id)]


def pad(samples: Sequence[Sample], *, pad_id: int = 0) -> MicroBatch:
    """One sequence a row, from its left; T is the longest one's length."""
    return _of(arrays.pad(samples, pad_id=pad_id))


def pack(samples: Sequence[Sample]) -> MicroBatch:
    """All sequences in one row, one after the other; T is the sum of their lengths."""
    return _of(arrays.pack(samples))


def _of(made: arrays.MicroBatch) -> MicroBatch:
    columns = {name: torch.from_numpy(array) for name, array in _columns(made).items()}
    return MicroBatch(**columns, samples=made.samples, packed=made.packed)


def _columns(of: arrays.Sequences[arrays.A]) -> dict[str, arrays.A]:
    return {one.name: getattr(of, one.name) for one in fields(of) if one.name not in ("samples", "packed")}
