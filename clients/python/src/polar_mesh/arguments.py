"""What a caller gives, in the messages of the API: what these do not take is refused by its name."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


def message_of(kind: type[M], /, **arguments: Any) -> M:
    """A message with these fields; None: without it. Raises ValueError or TypeError, with the argument's name."""
    message = kind()
    for name, value in arguments.items():
        with named(name):
            message.MergeFrom(kind(**{name: value}))
    return message


def seconds(argument: str, value: float) -> float:
    """It, unless it is NaN: with that no time is ever over. Raises ValueError, TypeError."""
    if math.isnan(value):
        raise ValueError(f"{argument}: must be a number of seconds, not {value}")
    return value


def from_one(argument: str, value: int | None) -> int | None:
    """It, unless it is below 1: the mesh takes 0 for one that was left out. Raises ValueError, TypeError."""
    with named(argument):
        if value is not None and value < 1:
            raise ValueError(f"must be at least 1, not {value}")
    return value


def end_of(timeout_s: float | None) -> float:
    """The moment of ``time.monotonic()`` at which so many seconds are over; None: never. Raises ValueError, TypeError."""
    return math.inf if timeout_s is None else time.monotonic() + seconds("timeout_s", timeout_s)


@contextmanager
def named(argument: str) -> Iterator[None]:
    """What is raised of a value, with the argument's name."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"{argument}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{argument}: {error}") from error
