"""A batch whose columns are one array each, over all of its traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .errors import DataLoss

T = TypeVar("T")

# The columns are little-endian on every machine.
IDS, MASK, LOGPROBS = np.dtype("<i4"), np.dtype("u1"), np.dtype("<f4")
_VERSIONS, _REWARDS = np.dtype("<i8"), np.dtype("<f8")


class Columns:
    """The traces of a batch as arrays over all of them, read-only: N traces, by trajectory and in its order, of S
    trajectories. P and R are the ids of all prompts and of all responses together.

    Where a trace lies is told by offsets, as variable-length attention takes them: its prompt is
    ``prompt_ids[prompt_offsets[i] : prompt_offsets[i + 1]]``, and ``response_offsets`` is for the other three.
    """

    __slots__ = ("_parts", "dropped_reasons", "trace_count", "trajectory_count")

    def __init__(self, parts: Mapping[str, bytes], dropped_reasons: Sequence[str]) -> None:
        self._parts = parts
        #: What the stream's filter dropped of it, by trajectory; empty where nothing was.
        self.dropped_reasons = tuple(dropped_reasons)
        #: N.
        self.trace_count = len(parts.get("rewards", b"")) // _REWARDS.itemsize
        #: S.
        self.trajectory_count = len(parts.get("outcomes", b""))

    def _array(self, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        return np.frombuffer(self._parts.get(name, b""), dtype)

    @property
    def prompt_ids(self) -> npt.NDArray[np.int32]:
        """int32[P]."""
        return self._array("prompt_ids", IDS)

    @property
    def response_ids(self) -> npt.NDArray[np.int32]:
        """int32[R]."""
        return self._array("response_ids", IDS)

    @property
    def loss_mask(self) -> npt.NDArray[np.uint8]:
        """uint8[R]: 1 = sampled by the policy and trained, 0 = context or masked."""
        return self._array("loss_mask", MASK)

    @property
    def logprobs(self) -> npt.NDArray[np.float32]:
        """float32[R]: natural logarithm, under the engine where ``loss_mask`` is 1, else 0."""
        return self._array("logprobs", LOGPROBS)

    @property
    def prompt_offsets(self) -> npt.NDArray[np.int32]:
        """int32[N + 1]."""
        return self._array("prompt_offsets", IDS)

    @property
    def response_offsets(self) -> npt.NDArray[np.int32]:
        """int32[N + 1]."""
        return self._array("response_offsets", IDS)

    @property
    def trajectory_indexes(self) -> npt.NDArray[np.int32]:
        """int32[N]: index of its trajectory in the batch."""
        return self._array("trajectory_indexes", IDS)

    @property
    def rewards(self) -> npt.NDArray[np.float64]:
        """float64[N]: what a trace counts with (``Trajectory.reward_of``); NaN where there is none."""
        return self._array("rewards", _REWARDS)

    @property
    def trajectory_rewards(self) -> npt.NDArray[np.float64]:
        """float64[S]: the trajectories' own; NaN where there is none."""
        return self._array("trajectory_rewards", _REWARDS)

    @property
    def policy_versions_min(self) -> npt.NDArray[np.int64]:
        """int64[S]: smallest policy version of a trajectory's calls; 0 where the engine tells none."""
        return self._array("policy_versions_min", _VERSIONS)

    @property
    def policy_versions_max(self) -> npt.NDArray[np.int64]:
        """int64[S]: largest one."""
        return self._array("policy_versions_max", _VERSIONS)

    @property
    def outcomes(self) -> npt.NDArray[np.uint8]:
        """uint8[S]: how the sessions ended, as the API numbers it; 1 is completed."""
        return self._array("outcomes", MASK)

    @property
    def prompt_lengths(self) -> npt.NDArray[np.int32]:
        """int32[N]."""
        return np.diff(self.prompt_offsets)

    @property
    def response_lengths(self) -> npt.NDArray[np.int32]:
        """int32[N]. ``np.repeat(values, response_lengths)`` gives each response id what its trace has."""
        return np.diff(self.response_offsets)

    def __repr__(self) -> str:
        shapes = f"prompt_ids=int32[{len(self.prompt_ids)}], response_ids=int32[{len(self.response_ids)}]"
        return f"Columns({shapes}, traces={self.trace_count}, trajectories={self.trajectory_count})"


def read_columns(parts: Mapping[str, bytes], dropped_reasons: Sequence[str]) -> Columns:
    """The columns of a message by name, whose memory they share. Raises DataLoss where they do not fit together."""
    size = {name: len(part) for name, part in parts.items()}.get
    read = Columns(parts, dropped_reasons)
    traces, trajectories, responses = read.trace_count, read.trajectory_count, size("response_ids", 0)
    of_traces, of_trajectories = IDS.itemsize * (traces + 1), _REWARDS.itemsize * trajectories
    if not (
        size("prompt_offsets") == size("response_offsets") == of_traces
        and size("trajectory_indexes", 0) == IDS.itemsize * traces
        and size("rewards", 0) == _REWARDS.itemsize * traces
        and size("trajectory_rewards", 0) == of_trajectories
        and size("policy_versions_min", 0) == size("policy_versions_max", 0) == of_trajectories
        and _last(parts["prompt_offsets"]) == size("prompt_ids", 0)
        and _last(parts["response_offsets"]) == responses == size("logprobs", 0)
        and size("loss_mask", 0) * IDS.itemsize == responses
    ):
        told = f"{traces} traces of {trajectories} trajectories, {responses} bytes of responses"
        raise DataLoss(f"a batch has columns that do not fit: {told}", code="DATA_LOSS")
    return read


def _last(offsets: bytes) -> int:
    """Bytes up to the end of the last trace, of columns of 4 bytes an item."""
    return int.from_bytes(offsets[-IDS.itemsize :], "little") * IDS.itemsize


class MadeLate(Sequence[T], Generic[T]):
    """Made when one of them is asked for, or their number."""

    __slots__ = ("_make", "_made")

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make = make
        self._made: tuple[T, ...] | None = None

    @property
    def all(self) -> tuple[T, ...]:
        """All of them."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self.all)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.all[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.all == tuple(other)

    def __repr__(self) -> str:
        return repr(self.all)

    def __reduce__(self) -> tuple[type[MadeLate[T]], tuple[Callable[[], tuple[T, ...]]]]:
        return MadeLate, (self._make,)

    __hash__ = None  # type: ignore[assignment]
