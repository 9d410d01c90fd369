"""Streams batches, touches every array, acknowledges; tells what it saw as JSON lines.

usage: consumer.py URL CONSUMER TASK_ID WARM_GROUPS GROUPS LAYOUT   (traces or columns)
"""

import json
import resource
import sys
import time

import numpy as np

from polar_mesh import Batch, Client

#: Groups of one optimizer step, acknowledged together.
STEP_GROUPS = 16


def touch(batch: Batch) -> tuple[int, int]:
    """Tokens of the batch, and a sum over all its arrays."""
    tokens = total = 0
    if batch.columns is not None:
        columns = batch.columns
        for column in (columns.prompt_ids, columns.response_ids, columns.loss_mask, columns.logprobs):
            total += int(np.add.reduce(column))
        return columns.prompt_ids.size + columns.response_ids.size, total
    for trajectory in batch.trajectories:
        for trace in trajectory.traces:
            tokens += trace.prompt_ids.size + trace.response_ids.size
            for column in (trace.prompt_ids, trace.response_ids, trace.loss_mask, trace.logprobs):
                total += int(np.add.reduce(column))
    return tokens, total


def resident_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    url, consumer, task_id, warm, groups, layout = sys.argv[1:]
    options = {"task_id": task_id, "max_unacked": 256, "layout": layout}
    with Client(trajectory_url=url) as client, client.stream(consumer, **options) as stream:
        for _ in range(int(warm)):
            stream.next(timeout_s=60).ack()
        tell(event="begin")
        began = told = time.monotonic()
        tokens = total = 0
        step: list[Batch] = []
        for number in range(int(groups)):
            batch = stream.next(timeout_s=60)
            of_batch, sum_of_batch = touch(batch)
            tokens += of_batch
            total += sum_of_batch
            step.append(batch)
            if len(step) == STEP_GROUPS or number == int(groups) - 1:
                stream.ack(step)
                step.clear()
            if time.monotonic() - told > 1:
                told = time.monotonic()
                tell(event="progress", tokens=tokens, resident_mib=resident_mib())
        tell(event="end", tokens=tokens, total=total, seconds=time.monotonic() - began, resident_mib=resident_mib())
        sys.stdin.read()


main()
