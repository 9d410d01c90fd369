"""Rebuilt traces as a trainer's groups, and what there is to compute in them. Pure, and without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from polar_mesh import Trajectory
from polar_mesh.batches import read_trajectory
from polar_mesh.gen.polar.reconstructor.v1 import trajectory_pb2 as pb

Row = Mapping[str, Any]
Groups = Sequence[Sequence[Trajectory]]

#: Columns of a line of `polar rebuild`, with the types that they have in a trajectory.
COLUMNS = {"prompt_ids": "<i4", "response_ids": "<i4", "loss_mask": "u1", "logprobs": "<f4"}


@dataclass(frozen=True)
class Size:
    """What a strategy's traces hold."""

    sessions: int
    #: Sequences that a trainer takes: traces with a trained token.
    sequences: int
    #: Ids that are trained, over all of them.
    trained: int
    #: Ids that go through the model: context, too.
    processed: int


def groups_of(sessions: Iterable[Row], traces: Iterable[Row]) -> list[list[Trajectory]]:
    """The sessions (``session_id``, ``task_id``, ``reward``), each with its traces, in groups by task."""
    groups: dict[str, dict[str, pb.Trajectory]] = {}
    by_session: dict[str, pb.Trajectory] = {}
    for row in sessions:
        message = pb.Trajectory(session_id=row["session_id"], task_id=row["task_id"], reward=row["reward"])
        by_session[message.session_id] = message
        groups.setdefault(message.task_id, {})[message.session_id] = message
    for row in traces:
        columns = {name: np.asarray(row[name], dtype).tobytes() for name, dtype in COLUMNS.items()}
        by_session[row["session_id"]].traces.append(pb.Trace(**columns))
    return [[read_trajectory(message) for message in group.values()] for group in groups.values()]


def size(groups: Groups) -> Size:
    lengths = [_lengths(one) for group in groups for one in group]
    trained = (trace.loss_mask for group in groups for one in group for trace in one.traces)
    return Size(
        sessions=len(lengths),
        sequences=sum(map(len, lengths)),
        trained=sum(int(np.count_nonzero(mask)) for mask in trained),
        processed=sum(map(sum, lengths)),
    )


def expected_ratio(per_request: Groups) -> float:
    """How many times the ids of whole conversations their calls hold, if each call adds as much as the next.

    T calls of a session that grow from ``first`` to ``last`` ids have T (first + last) / 2 of them, where the
    conversation has ``last``. That is T/2 where the first call is short, and T where nearly all is said before it.
    """
    lengths = [_lengths(one) for group in per_request for one in group]
    calls = sum(len(each) * (min(each) + max(each)) / 2 for each in lengths if each)
    return calls / sum(max(each) for each in lengths if each)


def _lengths(session: Trajectory) -> list[int]:
    return [len(one.prompt_ids) + len(one.response_ids) for one in session.traces if one.loss_mask.any()]
