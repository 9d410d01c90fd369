"""Samples in the arrays that a model takes, padded or packed, in numpy; ``polar_mesh.torch`` has the same in torch.

    for step in polar_mesh.arrays.micro_batches(rewards.samples(batches), tokens_max=16_384, layout="packed"):
        ...  # step.input_ids, .position_ids, .boundaries, .loss_mask, .logprobs, .advantages, .weights

The weights of ``rewards.samples`` are made for the whole step, so the losses of its micro-batches are added up as they
are. No value passes through a Python list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from .batches import Int64Array
from .samples import Sample

Layout = Literal["padded", "packed"]
Array = npt.NDArray[Any]
A = TypeVar("A")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sequences(Generic[A]):
    """Sequences side by side (``padded``: one a row, on its right filled up) or in one row (``packed``).

    All are [B, T] but for ``boundaries``. What is said of an id stands at its own index: its logprob comes from the logits
    one index before. A sequence's first id comes after nothing and is never trained.
    """

    #: int64; ``pad_id`` where nothing is.
    input_ids: A
    #: int64: 1 = an id of a sequence. A packed row is all 1 and keeps no sequences apart: see ``inputs``.
    attention_mask: A
    #: int64: index in its sequence, from 0.
    position_ids: A
    #: bool: trained.
    loss_mask: A
    #: float32: under the engine; 0 where not trained.
    logprobs: A
    #: float32: 0 where not trained.
    advantages: A
    #: float32: 0 where not trained.
    weights: A
    #: int64: index into ``samples``, -1 = none.
    sequences: A
    #: int32[S + 1]: where each sequence of a packed row begins, and the end, as variable-length attention wants it
    #: (``cu_seqlens``).
    boundaries: A
    samples: tuple[Sample, ...]
    #: Whether the sequences lie in one row.
    packed: bool

    def __repr__(self) -> str:
        ids = sum(one.length for one in self.samples)
        layout = "packed" if self.packed else "padded"
        return f"{type(self).__name__}({layout}, {len(self.samples)} sequences, {ids} ids, length_max={self.length_max})"

    @property
    def inputs(self) -> dict[str, A | bool]:
        """What a model of transformers is called with: ids and positions, padded the attention mask, and no cache.

        A packed row goes without a mask: one of 1 alone would have each sequence attend to those before it. Without it, and
        without a cache, the model keeps them apart by their positions, which begin again at 0.
        """
        told: dict[str, A | bool] = {"input_ids": self.input_ids, "position_ids": self.position_ids, "use_cache": False}
        return told if self.packed else {**told, "attention_mask": self.attention_mask}

    @property
    def length_max(self) -> int:
        """Ids of the longest sequence (``max_seqlen``)."""
        return max((one.length for one in self.samples), default=0)

    def _policy_versions(self) -> Int64Array:
        responses = _responses(self.samples, self.packed)
        versions = np.full(responses.shape, -1, np.int64)
        versions[responses] = _joined([one.trace.policy_versions for one in self.samples])
        return versions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MicroBatch(Sequences[Array]):
    """Sequences as numpy arrays."""

    @property
    def policy_versions(self) -> Int64Array:
        """int64[B, T]: version of the weights that sampled the id; 0 where the engine tells none, -1 where none sampled it.

        Made of the samples' traces when it is asked for.
        """
        return self._policy_versions()


def micro_batches(
    samples: Sequence[Sample], *, tokens_max: int, layout: Layout = "padded", pad_id: int = 0
) -> list[MicroBatch]:
    """The samples in micro-batches of at most ``tokens_max`` ids each, filling included; longest first.

    Raises:
        ValueError: A trace has more than ``tokens_max`` ids; another layout.
        TypeError: What is given are no samples.
    """
    for one in samples:
        if not isinstance(one, Sample):
            raise TypeError(f"{type(one).__name__} is no Sample: give rewards.samples([batch, ...])")
    if layout not in get_args(Layout):
        raise ValueError(f"layout {layout!r} is none of {', '.join(get_args(Layout))}")
    order = sorted(samples, key=lambda one: one.length, reverse=True)
    if order and order[0].length > tokens_max:
        session = order[0].trajectory.session_id
        raise ValueError(f"a trace of session {session} has {order[0].length} ids: tokens_max is {tokens_max}")
    if layout == "packed":
        return [pack(bin_) for bin_ in _best_fit(order, tokens_max)]
    return [pad(bin_, pad_id=pad_id) for bin_ in _rows(order, tokens_max)]


def pad(samples: Sequence[Sample], *, pad_id: int = 0) -> MicroBatch:
    """One sequence a row, from its left; T is the longest one's length."""
    lengths = _lengths(samples).sum(axis=1)
    at = np.arange(lengths.max(initial=0))
    there = at < lengths[:, None]
    sequences = np.where(there, np.arange(len(samples))[:, None], -1)
    return _filled(samples, there, np.where(there, at, 0), sequences, pad_id, packed=False)


def pack(samples: Sequence[Sample]) -> MicroBatch:
    """All sequences in one row, one after the other; T is the sum of their lengths."""
    lengths = _lengths(samples).sum(axis=1)
    total = int(lengths.sum())
    positions = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sequences = np.repeat(np.arange(len(samples)), lengths)
    return _filled(samples, np.ones((1, total), np.bool_), positions[None], sequences[None], 0, packed=True)


def _filled(
    samples: Sequence[Sample], there: Array, position_ids: Array, sequences: Array, pad_id: int, *, packed: bool
) -> MicroBatch:
    responses = _responses(samples, packed)
    # An id that comes after nothing: of a trace without a prompt.
    first = np.zeros(there.shape, np.bool_) if _lengths(samples)[:, 0].all() else position_ids == 0

    def placed(columns: list[Array], dtype: type[np.generic]) -> Array:
        whole = np.zeros(there.shape, dtype)
        whole[responses] = _joined(columns)
        whole[first] = 0
        return whole

    input_ids = np.full(there.shape, pad_id, np.int64)
    input_ids[there & ~responses] = _joined([one.prompt_ids for one in samples])
    input_ids[responses] = _joined([one.response_ids for one in samples])
    return MicroBatch(
        input_ids=input_ids,
        attention_mask=there.astype(np.int64),
        position_ids=position_ids,
        loss_mask=placed([one.loss_mask for one in samples], np.bool_),
        logprobs=placed([one.logprobs for one in samples], np.float32),
        advantages=placed([one.advantages for one in samples], np.float32),
        weights=placed([one.weights for one in samples], np.float32),
        sequences=sequences,
        boundaries=np.cumsum([0, *(one.length for one in samples)], dtype=np.int32),
        samples=tuple(samples),
        packed=packed,
    )


def _lengths(samples: Sequence[Sample]) -> Int64Array:
    """int64[N, 2]: ids of the prompt and of the response."""
    each = [(len(one.prompt_ids), len(one.response_ids)) for one in samples]
    return np.array(each, np.int64).reshape(-1, 2)


def _responses(samples: Sequence[Sample], packed: bool) -> Array:
    """bool[B, T]: where the responses' ids lie, in order."""
    lengths = _lengths(samples)
    if packed:
        return np.repeat(np.tile([False, True], len(samples)), lengths.ravel())[None]
    at, ends = np.arange(lengths.sum(axis=1).max(initial=0)), lengths.sum(axis=1)[:, None]
    return (at >= lengths[:, :1]) & (at < ends)


def _joined(columns: list[Array]) -> Array:
    return np.concatenate(columns) if columns else np.empty(0)


def _rows(order: Sequence[Sample], tokens_max: int) -> list[list[Sample]]:
    """Neighbours of `order`, longest first: as many rows as the first one's length allows."""
    bins: list[list[Sample]] = []
    for sample in order:
        if not bins or (len(bins[-1]) + 1) * bins[-1][0].length > tokens_max:
            bins.append([])
        bins[-1].append(sample)
    return bins


def _best_fit(order: Sequence[Sample], tokens_max: int) -> list[list[Sample]]:
    """Each into the fullest bin that has room: with the longest first, at most 11/9 of the fewest bins, and one more."""
    bins: list[list[Sample]] = []
    #: Of each bin the room that is left, and its index; least room first.
    rooms: list[tuple[int, int]] = []
    for sample in order:
        at = bisect_left(rooms, (sample.length, 0))
        if at < len(rooms):
            room, index = rooms.pop(at)
        else:
            room, index = tokens_max, len(bins)
            bins.append([])
        bins[index].append(sample)
        insort(rooms, (room - sample.length, index))
    return bins
