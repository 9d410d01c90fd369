"""Reads the same batches in both layouts, and compares all that a trainer sees of them; prints what came as JSON.

usage: python-columns.py URL COUNT
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import polar_mesh
from polar_mesh import Batch, Client, aio


def told(value: Any) -> Any:
    """All fields of it, arrays by their bytes; without what belongs to a consumer."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.tobytes().hex()]
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value)]
        return {name: told(getattr(value, name)) for name in names if name not in ("_ledger", "columns")}
    if isinstance(value, Mapping):
        return {str(key): told(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [told(one) for one in value]
    return value


def check(traces: Batch, columns: Batch) -> None:
    of = columns.columns
    assert traces.columns is None and of is not None
    np.testing.assert_array_equal(traces.rewards, columns.rewards)
    assert traces.staleness == columns.staleness and repr(traces) == repr(columns)
    assert told(traces) == told(columns), (told(traces), told(columns))
    assert told(pickle.loads(pickle.dumps(columns))) == told(traces)
    every = [(index, one, trace) for index, one in enumerate(traces.trajectories) for trace in one.traces]
    assert of.trace_count == len(every) and of.trajectory_count == len(traces.trajectories)
    assert of.trajectory_indexes.tolist() == [index for index, _, _ in every]
    rewards = [one.reward_of(trace) for _, one, trace in every]
    assert [None if np.isnan(one) else one for one in of.rewards.tolist()] == rewards
    assert of.policy_versions_min.tolist() == [one.policy_version_min for one in traces.trajectories]
    assert of.policy_versions_max.tolist() == [one.policy_version_max for one in traces.trajectories]
    assert [number == 1 for number in of.outcomes] == [one.outcome == "completed" for one in traces.trajectories]
    for name, offsets in (("prompt_ids", of.prompt_offsets), ("response_ids", of.response_offsets)):
        whole = [getattr(trace, name) for _, _, trace in every]
        assert offsets.tolist() == np.cumsum([0, *map(len, whole)]).tolist()
    for name in ("prompt_ids", "response_ids", "loss_mask", "logprobs"):
        column = getattr(of, name)
        assert not column.flags.writeable and column.flags.aligned
        assert column.tobytes() == b"".join(getattr(trace, name).tobytes() for _, _, trace in every)


def read(url: str, transport: Any, layout: Any, count: int) -> list[Batch]:
    name = f"{transport}-{layout}"
    with Client(trajectory_url=url, transport=transport) as client, client.stream(name, layout=layout) as stream:
        batches = [stream.next(timeout_s=30) for _ in range(count)]
        stream.ack(batches)
    return batches


async def read_aio(url: str, transport: Any, layout: Any, count: int) -> list[Batch]:
    async with aio.Client(trajectory_url=url, transport=transport) as client:
        async with client.stream(f"aio-{transport}-{layout}", layout=layout) as stream:
            batches = [await stream.next(timeout_s=30) for _ in range(count)]
            await stream.ack(batches)
    return batches


def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    for transport in ("http", "grpc"):
        both = [read(url, transport, layout, count) for layout in ("traces", "columns")]
        others = [asyncio.run(read_aio(url, transport, layout, count)) for layout in ("traces", "columns")]
        for one in (both, others):
            for traces, columns in zip(*one, strict=True):
                check(traces, columns)
    try:
        Client(trajectory_url=url).stream("other", layout="rows")  # type: ignore[arg-type]
    except ValueError as error:
        refused = str(error)
    failures = [[one.failure and one.failure.reason for one in batch.trajectories] for batch in both[1]]
    print(json.dumps({"version": bool(polar_mesh.Columns), "refused": refused, "failures": failures}))


main()
