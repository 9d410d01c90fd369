"""Ids of the tasks that a training submits: the name of its consumer, its process, and a number."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Iterator

_PROCESS_DIGITS = 12


def new_task_ids(consumer: str) -> Iterator[str]:
    """Those of this process, without end."""
    process = uuid.uuid4().hex[:_PROCESS_DIGITS]
    return (f"{consumer}-{process}-{number}" for number in itertools.count())


def is_of(consumer: str, task_id: str) -> bool:
    """Whether a process with this consumer made it; not one whose consumer's name only begins alike."""
    return re.fullmatch(rf"{re.escape(consumer)}-[0-9a-f]{{{_PROCESS_DIGITS}}}-[0-9]+", task_id) is not None
