"""The game: a house of rooms, each with eight doors, of which the key that lies there fits one.

What the tool `open` answers names the door that the next key fits, so that each call has to use the answer to the one
before it. Out of the house is who has opened four doors with five calls. Standard library only: the sandbox has this file.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

DOORS = 8
TO_OPEN = 4
CALLS_MAX = 5

#: As a model is told it, in OpenAI's form.
TOOL = {
    "type": "function",
    "function": {
        "name": "open",
        "description": "Tries the key on a door, which opens if it fits. Then takes the next key.",
        "parameters": {
            "type": "object",
            "properties": {"door": {"type": "integer", "minimum": 1, "maximum": DOORS}},
            "required": ["door"],
        },
    },
}


def draw_keys(rng: random.Random) -> list[int]:
    """The doors that the keys fit, one a call."""
    return [rng.randint(1, DOORS) for _ in range(CALLS_MAX)]


def instruction(keys: Sequence[int]) -> str:
    return f"Go through {TO_OPEN} doors. {_fits(keys[0])}"


def answer(keys: Sequence[int], tried: Sequence[int]) -> str:
    """What the tool says to the last of the doors that were tried."""
    opened = "Open." if tried[-1] == keys[len(tried) - 1] else "Locked."
    return opened if is_over(keys, tried) else f"{opened} {_fits(keys[len(tried)])}"


def is_out(keys: Sequence[int], tried: Sequence[int]) -> bool:
    return sum(key == door for key, door in zip(keys, tried)) >= TO_OPEN


def is_over(keys: Sequence[int], tried: Sequence[int]) -> bool:
    return len(tried) >= CALLS_MAX or is_out(keys, tried)


def _fits(key: int) -> str:
    return f"The key fits door {key}."
