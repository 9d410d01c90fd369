"""Streams batches, touches every array, acknowledges; tells what it saw as JSON lines.

usage: consumer.py URL CONSUMER TASK_ID WARM_GROUPS GROUPS LAYOUT   (traces or columns)

Of the groups that are not acknowledged, those of a step are with the trainer, and as many are on their way.
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
    url, consumer, task_id, layout = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[6]
    warm, groups = int(sys.argv[4]), int(sys.argv[5])
    options = {"task_id": task_id, "max_unacked": 2 * STEP_GROUPS, "layout": layout}
    with Client(trajectory_url=url) as client, client.stream(consumer, **options) as stream:
        began = told = 0.0
        tokens = total = 0
        step: list[Batch] = []
        for number in range(-warm, groups):
            if number == 0:
                tell(event="begin")
                began = told = time.monotonic()
                tokens = total = 0
            batch = stream.next(timeout_s=60)
            of_batch, sum_of_batch = touch(batch)
            tokens += of_batch
            total += sum_of_batch
            step.append(batch)
            if len(step) == STEP_GROUPS or number in (-1, groups - 1):
                stream.ack(step)
                step.clear()
            if number >= 0 and time.monotonic() - told > 1:
                told = time.monotonic()
                tell(event="progress", tokens=tokens, resident_mib=resident_mib())
        tell(event="end", tokens=tokens, total=total, seconds=time.monotonic() - began, resident_mib=resident_mib())
        sys.stdin.read()


main()
