"""Reads batches with the Python client, acknowledges them, prints them as JSON: ids as integers, floats as hex bits.

usage: python-reader.py threads|aio URL CONSUMER COUNT TASK_ID
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys

from polar_mesh import Batch, Client, RoutedExperts, Trajectory, aio


def experts(one: RoutedExperts | None) -> list | None:
    if one is None:
        return None
    _, layers, top_k = one.rows.shape
    return [layers, top_k, one.rows.dtype.itemsize, one.rows.tobytes().hex(), one.known.tobytes().hex()]


def trajectory(one: Trajectory) -> dict:
    return {
        "session_id": one.session_id,
        "sample_index": one.sample_index,
        "attempt": one.attempt,
        "outcome": one.outcome,
        "failure": one.failure.reason if one.failure else None,
        "reward": struct.pack(">d", one.reward).hex() if one.reward is not None else None,
        "policy_versions": [str(one.policy_version_min), str(one.policy_version_max)],
        "traces": [
            {
                "prompt_ids": trace.prompt_ids.tolist(),
                "response_ids": trace.response_ids.tolist(),
                "loss_mask": trace.loss_mask.tolist(),
                "logprobs": trace.logprobs.astype(">f4").tobytes().hex(),
                "spans": [
                    [span.call_id, span.start, span.length, span.finish_reason, str(span.policy_version)]
                    for span in trace.spans
                ],
                "experts": experts(trace.routed_experts),
            }
            for trace in one.traces
        ],
    }


def read(batch: Batch) -> dict:
    return {
        "batch_id": str(batch.batch_id),
        "task_id": batch.task_id,
        "group_id": batch.group_id,
        "redelivered": batch.redelivered,
        "trajectories": [trajectory(one) for one in batch.trajectories],
    }


async def read_with_aio(url: str, consumer: str, count: int, task_id: str) -> list[Batch]:
    async with aio.Client(trajectory_url=url) as client, client.stream(consumer, task_id=task_id) as stream:
        batches = [await stream.next(timeout_s=60) for _ in range(count)]
        await stream.ack(batches)
        return batches


def read_with_threads(url: str, consumer: str, count: int, task_id: str) -> list[Batch]:
    with Client(trajectory_url=url) as client, client.stream(consumer, task_id=task_id) as stream:
        batches = [stream.next(timeout_s=60) for _ in range(count)]
        stream.ack(batches)
        return batches


kind, url, consumer, count, task_id = sys.argv[1:]
if kind == "aio":
    batches = asyncio.run(read_with_aio(url, consumer, int(count), task_id))
else:
    batches = read_with_threads(url, consumer, int(count), task_id)
json.dump([read(batch) for batch in batches], sys.stdout)
