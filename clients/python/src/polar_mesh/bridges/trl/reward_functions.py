"""Reward functions of GRPOTrainer: what the mesh said of a session, and others beside it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

#: As TRL calls it: all by keyword, with a list for each column; a coroutine function is awaited.
RewardFunction = Callable[..., Any]


def polar_reward(polar_reward: Sequence[float | None], **_: Any) -> list[float | None]:
    """Reward function for ``GRPOTrainer(reward_funcs=)``: what the mesh's evaluators said; None = no reward."""
    return list(polar_reward)


def scored(other: RewardFunction) -> RewardFunction:
    """``other`` as a reward function beside ``polar_reward``: None for each session that has no reward, too.

    TRL adds up what its functions say of a row, with 0 for None. It leaves out a row, which gets no advantage and is in
    no mean, only where all of them say None.
    """
    bare = _bare(other)
    is_async = inspect.iscoroutinefunction(bare) or inspect.iscoroutinefunction(bare.__call__)
    return _ScoredAsync(other) if is_async else _Scored(other)


def refuse_unscored(functions: Sequence[Any]) -> None:
    """Raise ValueError where one would give a reward to a session that has none."""
    unscored = [_name(one) for one in functions if not (one is polar_reward or isinstance(one, _Scored))]
    if unscored:
        raise ValueError(
            f"a session without a reward would get one from {', '.join(unscored)}: beside polar_reward, "
            "reward_funcs takes functions in scored() only, of polar_mesh.bridges.trl"
        )


class _Scored:
    # A class, so that it can be pickled where the function can.
    def __init__(self, other: RewardFunction) -> None:
        self._other = other
        self.__name__ = _name(other)

    def __call__(self, *, polar_reward: Sequence[float | None], **columns: Any) -> Any:
        return _where_scored(self._other(polar_reward=polar_reward, **columns), polar_reward)


class _ScoredAsync(_Scored):
    async def __call__(self, *, polar_reward: Sequence[float | None], **columns: Any) -> Any:
        return _where_scored(await self._other(polar_reward=polar_reward, **columns), polar_reward)


def _where_scored(values: Sequence[float | None], polar_reward: Sequence[float | None]) -> list[float | None]:
    return [None if reward is None else value for value, reward in zip(values, polar_reward, strict=True)]


def _name(function: Any) -> str:
    """As TRL names it in its log."""
    bare = _bare(function)
    return getattr(bare, "__name__", type(bare).__name__)


def _bare(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function
