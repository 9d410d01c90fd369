"""The model calls that a trace is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from .gen.polar.reconstructor.v1 import trajectory_pb2


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """Ids that one version of the weights sampled: ``response_ids[start : start + length]``."""

    policy_version: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class CallSpan:
    """Where the sampled ids of one model call lie in a trace: ``response_ids[start : start + length]``."""

    call_id: str
    start: int
    length: int
    #: stop, length, tool_calls, cancelled, abort or error.
    finish_reason: str
    #: Version of the weights that sampled it; 0 where the engine tells none.
    policy_version: int
    #: Why ids of it are masked; empty when all are trained, several reasons by commas.
    masked_reason: str
    #: Where weights changed in the middle of it, its parts by version, in order; else empty.
    policy_runs: tuple[PolicyRun, ...] = ()


class Spans(Sequence[CallSpan]):
    """The model calls of a trace; each is made when it is asked for."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Sequence[trajectory_pb2.CallSpan]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> CallSpan: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CallSpan, ...]: ...

    def __getitem__(self, index: int | slice) -> CallSpan | tuple[CallSpan, ...]:
        if isinstance(index, slice):
            return tuple(_span(one) for one in self._messages[index])
        return _span(self._messages[index])

    def __iter__(self) -> Iterator[CallSpan]:
        return map(_span, self._messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[CallSpan, ...]], tuple[tuple[CallSpan, ...]]]:
        return tuple, (tuple(self),)

    __hash__ = None  # type: ignore[assignment]


def _span(message: trajectory_pb2.CallSpan) -> CallSpan:
    return CallSpan(
        call_id=message.call_id,
        start=message.start,
        length=message.length,
        finish_reason=message.finish_reason,
        policy_version=message.policy_version,
        masked_reason=message.masked_reason,
        policy_runs=tuple(
            PolicyRun(run.policy_version, run.start, run.length) for run in message.policy_runs
        ),
    )
