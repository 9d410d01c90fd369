"""A small trainer loop: stream groups, compute leave-one-out advantages, step, acknowledge.

    pip install ./clients/python
    python examples/trainer/consume.py --max-batches 1

With the mesh of `npm start` running it prints one block a group and ends after `--max-batches` of them; without that
option it runs until Ctrl-C. The step here sums what the trained tokens of the group count, where a trainer would run
its optimizer. A group is acknowledged after its step: what a killed trainer held comes again at its next
start, with "redelivered".
"""

from __future__ import annotations

import argparse
import itertools
import os

import numpy as np

from polar_mesh import Client, Trajectory, rewards


def optimizer_step(samples: list[rewards.Sample]) -> tuple[int, float]:
    """Returns the trained tokens and the sum of weight x advantage x log-probability over them."""
    tokens, objective = 0, 0.0
    for one in samples:
        tokens += int(np.count_nonzero(one.weights))
        objective += float((one.weights * one.advantages * one.logprobs).sum(dtype=np.float64))
    return tokens, objective


def describe(trajectory: Trajectory, advantage: float) -> str:
    reward = "-" if trajectory.reward is None else f"{trajectory.reward:.3f}"
    shown = "-" if np.isnan(advantage) else f"{advantage:+.3f}"
    stats = trajectory.stats
    masked = sum(stats.masked_tokens.values())
    text = (
        f"  {trajectory.session_id}: {trajectory.outcome}, reward {reward}, advantage {shown}, {stats.calls} calls, "
        f"{len(trajectory.traces)} traces, {stats.trained_tokens} trained, {masked} masked"
    )
    if trajectory.failure is not None:
        text += f", {trajectory.failure.reason}: {trajectory.failure.message}"
    return text


def consume(client: Client, consumer: str, task_id: str | None, max_batches: int | None) -> None:
    with client.stream(consumer, task_id=task_id) as stream:
        for batch in itertools.islice(stream, max_batches):
            advantages = rewards.leave_one_out(rewards.outcome_rewards(batch))
            tokens, objective = optimizer_step(rewards.samples([batch]))
            batch.ack()
            again = ", redelivered" if batch.redelivered else ""
            print(f"batch {batch.batch_id}: task {batch.task_id}, group {batch.group_id}{again}")
            for trajectory, advantage in zip(batch.trajectories, advantages):
                print(describe(trajectory, float(advantage)))
            print(f"  step: {tokens} tokens, objective {objective:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollout-url", default=os.environ.get("POLAR_ROLLOUT_URL") or "http://127.0.0.1:8080")
    parser.add_argument("--trajectory-url", default=os.environ.get("POLAR_TRAJECTORY_URL") or "http://127.0.0.1:8070")
    parser.add_argument("--consumer", default="trainer", help="name of the durable cursor (default: trainer)")
    parser.add_argument("--task-id", help="only batches of this task; fixed at the consumer's first use")
    parser.add_argument("--max-batches", type=int, help="end after this many")
    options = parser.parse_args()
    with Client(options.rollout_url, options.trajectory_url) as client:
        try:
            consume(client, options.consumer, options.task_id, options.max_batches)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
