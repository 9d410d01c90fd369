"""Traces as torch tensors, and micro-batches of them for a training step. Only this module imports torch.

    for step in polar_mesh.torch.micro_batches(rewards.samples(groups), tokens_max=16_384):
        step = step.to("cuda")
        logits = model(step.input_ids, attention_mask=step.attention_mask, position_ids=step.position_ids).logits
        ratio = torch.exp(polar_mesh.torch.token_logprobs(logits, step.input_ids) - step.logprobs)
        (-step.weights * step.advantages * ratio).sum().backward()
    optimizer.step()

The weights of ``rewards.samples`` are made for the whole step, so the losses of its micro-batches are added up as they
are. No value passes through a Python list.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from .batches import Trace
from .rewards import Sample

Layout = Literal["padded", "packed"]


@dataclass(frozen=True, slots=True, eq=False)
class TraceTensors:
    """The columns of a trace: int32[P], int32[R], uint8[R], float32[R]."""

    prompt_ids: torch.Tensor
    response_ids: torch.Tensor
    loss_mask: torch.Tensor
    logprobs: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch:
    """Sequences side by side (``padded``: one a row, on its right filled up) or in one row (``packed``).

    All tensors are [B, T]. What is said of a token stands at its own index: its logprob comes from the logits one
    index before. A sequence's first id comes after nothing and is never trained.
    """

    #: int64; ``pad_id`` where nothing is.
    input_ids: torch.Tensor
    #: int64: 1 = an id of a sequence. A packed row is all 1: use position_ids or sequences to keep them apart.
    attention_mask: torch.Tensor
    #: int64: index in its sequence, from 0.
    position_ids: torch.Tensor
    #: bool: trained.
    loss_mask: torch.Tensor
    #: float32: under the engine; 0 where not trained.
    logprobs: torch.Tensor
    #: float32: 0 where not trained.
    advantages: torch.Tensor
    #: float32: 0 where not trained.
    weights: torch.Tensor
    #: int64: version of the weights that sampled the id; 0 where the engine tells none, -1 where none sampled it.
    policy_versions: torch.Tensor
    #: int64: index into ``samples``, -1 = none.
    sequences: torch.Tensor
    #: int32[S + 1]: where each sequence of a packed row begins, and the end, as variable-length attention wants it.
    boundaries: torch.Tensor
    samples: tuple[Sample, ...]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> MicroBatch:
        """The same on a device."""
        tensors = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "samples"}
        moved = {name: tensor.to(device, non_blocking=non_blocking) for name, tensor in tensors.items()}
        return replace(self, **moved)


def tensors(trace: Trace) -> TraceTensors:
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

    Args:
        logits: [B, T, V].
        input_ids: int64[B, T].
        temperature: That of the sampling, where the engine's logprobs are after it.
    """
    scores = torch.log_softmax(logits[:, :-1].float() / temperature, dim=-1)
    found = scores.gather(-1, input_ids[:, 1:, None]).squeeze(-1)
    return torch.nn.functional.pad(found, (1, 0))


def micro_batches(
    samples: Sequence[Sample], *, tokens_max: int, layout: Layout = "padded", pad_id: int = 0
) -> list[MicroBatch]:
    """The samples in micro-batches of at most ``tokens_max`` ids each, filling included; longest first.

    Raises:
        ValueError: A trace has more than ``tokens_max`` ids; another layout.
    """
    if layout not in get_args(Layout):
        raise ValueError(f"layout {layout!r} is none of {', '.join(get_args(Layout))}")
    order = sorted(samples, key=_length, reverse=True)
    if order and _length(order[0]) > tokens_max:
        session = order[0].trajectory.session_id
        raise ValueError(f"a trace of session {session} has {_length(order[0])} ids: tokens_max is {tokens_max}")
    if layout == "packed":
        return [pack(bin_, pad_id=pad_id) for bin_ in _best_fit(order, tokens_max)]
    return [pad(bin_, pad_id=pad_id) for bin_ in _rows(order, tokens_max)]


def pad(samples: Sequence[Sample], *, pad_id: int = 0) -> MicroBatch:
    """One sequence a row, from its left; T is the longest one's length."""
    width = max(map(_length, samples), default=0)
    places = [(row, 0) for row in range(len(samples))]
    return _filled(samples, (len(samples), width), places, pad_id)


def pack(samples: Sequence[Sample], *, pad_id: int = 0) -> MicroBatch:
    """All sequences in one row, one after the other; T is the sum of their lengths."""
    ends = np.cumsum([_length(one) for one in samples], dtype=np.int64)
    places = [(0, int(end) - _length(one)) for one, end in zip(samples, ends, strict=True)]
    return _filled(samples, (1, int(ends[-1]) if len(ends) else 0), places, pad_id)


def _filled(
    samples: Sequence[Sample], shape: tuple[int, int], places: Sequence[tuple[int, int]], pad_id: int
) -> MicroBatch:
    whole: dict[str, npt.NDArray[Any]] = {name: np.full(shape, empty, dtype) for name, (dtype, empty) in _COLUMNS.items()}
    whole["input_ids"][:] = pad_id
    for index, (sample, (row, start)) in enumerate(zip(samples, places, strict=True)):
        ids = slice(start, start + _length(sample))
        response = slice(start + len(sample.trace.prompt_ids), ids.stop)
        whole["input_ids"][row, start : response.start] = sample.trace.prompt_ids
        whole["position_ids"][row, ids] = np.arange(ids.stop - start)
        whole["attention_mask"][row, ids] = 1
        whole["sequences"][row, ids] = index
        for name, column in _RESPONSE_COLUMNS.items():
            whole[name][row, response] = column(sample)
        for name in ("loss_mask", "logprobs", "advantages", "weights"):
            whole[name][row, start : start + 1] = 0
    boundaries = np.cumsum([0, *map(_length, samples)], dtype=np.int32)
    columns = {name: torch.from_numpy(column) for name, column in whole.items()}
    return MicroBatch(**columns, boundaries=torch.from_numpy(boundaries), samples=tuple(samples))


_COLUMNS = {
    "input_ids": (np.int64, 0),
    "attention_mask": (np.int64, 0),
    "position_ids": (np.int64, 0),
    "loss_mask": (np.bool_, False),
    "logprobs": (np.float32, 0),
    "advantages": (np.float32, 0),
    "weights": (np.float32, 0),
    "policy_versions": (np.int64, -1),
    "sequences": (np.int64, -1),
}

_RESPONSE_COLUMNS: dict[str, Callable[[Sample], npt.NDArray[Any]]] = {
    "input_ids": lambda sample: sample.trace.response_ids,
    "loss_mask": lambda sample: sample.trace.loss_mask,
    "logprobs": lambda sample: sample.trace.logprobs,
    "advantages": lambda sample: sample.advantages,
    "weights": lambda sample: sample.weights,
    "policy_versions": lambda sample: sample.trace.policy_versions,
}


def _length(sample: Sample) -> int:
    return len(sample.trace.prompt_ids) + len(sample.trace.response_ids)


def _rows(order: Sequence[Sample], tokens_max: int) -> list[list[Sample]]:
    """Neighbours of `order`, longest first: as many rows as the first one's length allows."""
    bins: list[list[Sample]] = []
    for sample in order:
        if not bins or (len(bins[-1]) + 1) * _length(bins[-1][0]) > tokens_max:
            bins.append([])
        bins[-1].append(sample)
    return bins


def _best_fit(order: Sequence[Sample], tokens_max: int) -> list[list[Sample]]:
    """Each into the fullest bin that has room: with the longest first, at most 11/9 of the fewest bins, and one more."""
    bins: list[list[Sample]] = []
    #: Of each bin the room that is left, and its index; least room first.
    rooms: list[tuple[int, int]] = []
    for sample in order:
        length = _length(sample)
        at = bisect_left(rooms, (length, 0))
        if at < len(rooms):
            room, index = rooms.pop(at)
        else:
            room, index = tokens_max, len(bins)
            bins.append([])
        bins[index].append(sample)
        insort(rooms, (room - length, index))
    return bins
