"""A trainer loop that trains on every group exactly once, whatever is killed and whenever.

    pip install ./clients/python
    python examples/trainer/exactly_once.py --journal /tmp/steps.jsonl

Kill it with SIGKILL and start it again: it goes on after the last step in its journal. What it prints is each batch
that comes, how often it was sent, and whether it was sent before; a step is a pause here.
"""

from __future__ import annotations

import argparse
import os
import time
from datetime import datetime

from polar_mesh import Batch, Client, Journal


def optimizer_step(batches: list[Batch], step_s: float) -> str:
    """Returns the name of the checkpoint that it made."""
    time.sleep(step_s)
    return f"weights-{batches[-1].batch_id}"


def train(client: Client, journal: Journal, consumer: str, batches_a_step: int, step_s: float, layout: str = "traces") -> None:
    # By what a journal knows them: one that a seek brings again before its step gives way to its later delivery.
    taken: dict[tuple[int, datetime], Batch] = {}
    # A step needs all of its batches at once.
    with client.stream(consumer, max_unacked=max(16, batches_a_step), layout=layout) as stream:
        for batch in stream:
            print(f"batch {batch.batch_id} {batch.delivery_count} {batch.redelivered}", flush=True)
            if batch in journal:
                batch.ack()
                continue
            taken[batch.batch_id, batch.ready_time] = batch
            if len(taken) == batches_a_step:
                batches = list(taken.values())
                checkpoint = optimizer_step(batches, step_s)
                journal.commit(batches, checkpoint=checkpoint)
                stream.ack(batches)
                taken.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectory-url", default=os.environ.get("POLAR_TRAJECTORY_URL") or "http://127.0.0.1:8070")
    parser.add_argument("--consumer", default="trainer", help="name of the durable cursor (default: trainer)")
    parser.add_argument("--journal", required=True, help="file with one line for each step that counts")
    parser.add_argument("--batches-a-step", type=int, default=1)
    parser.add_argument("--step-s", type=float, default=0.1, help="seconds that a step takes (default: 0.1)")
    parser.add_argument("--layout", choices=("traces", "columns"), default="traces", help="how batches hold their traces")
    options = parser.parse_args()
    with Journal(options.journal) as journal, Client(trajectory_url=options.trajectory_url) as client:
        train(client, journal, options.consumer, options.batches_a_step, options.step_s, options.layout)


if __name__ == "__main__":
    main()
