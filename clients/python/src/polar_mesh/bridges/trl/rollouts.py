"""Sessions as the rollouts of GRPOTrainer: one task for each group of equal prompts, one row for each session."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...batches import Batch, Trace, Trajectory
from ...client import Client
from ...stream import TrajectoryStream
from .parameters import engine_parameters
from .reward_functions import refuse_unscored
from ..task_ids import new_task_ids
from .untrained import Untrained
from .weights import WeightTransfer
from .worker import cancel

Prompt = Any
#: The task of a prompt: a mapping as for ``Client.submit``, without ``task_id`` and ``num_samples``.
TaskOf = Callable[[Prompt], Mapping[str, Any]]


def rollout_func(
    client: Client,
    task: TaskOf,
    *,
    weights: WeightTransfer | None = None,
    consumer: str = "trl",
    timeout_s: float = 3600,
) -> Rollouts:
    """For ``GRPOTrainer(rollout_func=)``, with ``polar_reward`` as its reward function, or one of several.

    The others are ``scored(other)``; any that is not is a ValueError at the first call, since it would give a reward to
    sessions that have none.

    Args:
        task: Makes the task of a prompt. The sessions render their own conversations; a prompt only names what to do.
            They are sampled at the trainer's ``temperature``, which its loss is taken at; a task that names another one is
            a ValueError, but in an evaluation.
        weights: Brings the trainer's weights to the engines before the rollouts of each step.
        consumer: Name of the durable cursor; one a training process.
        timeout_s: Seconds for the rollouts of one step; then DeadlineExceeded.
    """
    return Rollouts(client, task, weights, consumer, timeout_s)


class Rollouts:
    """Called by the trainer. A batch is acknowledged at the call after the one that gave it: its step is over then.

    The tasks of a call that fails are cancelled. What an earlier process left unacknowledged is passed over: GRPOTrainer
    takes completions of its own prompts only.
    """

    def __init__(
        self, client: Client, task: TaskOf, weights: WeightTransfer | None, consumer: str, timeout_s: float
    ) -> None:
        self._client = client
        self._task = task
        self._weights = weights
        self._consumer = consumer
        self._timeout_s = timeout_s
        self._stream: TrajectoryStream | None = None
        self._held: list[Batch] = []
        self._synced_step: int | None = None
        self._task_ids = new_task_ids(consumer)
        self._untrained = Untrained()
        #: What did not fit into one row a session: sessions_lost, sessions_without_trace, traces_left_out,
        #: trained_tokens_left_out.
        self.counts: Counter[str] = Counter()

    def __call__(self, prompts: Sequence[Prompt], trainer: Any) -> dict[str, list[Any]]:
        refuse_unscored(trainer.reward_funcs)
        self.acknowledge()
        self._sync(trainer)
        samples = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        groups = list(_groups(prompts, samples))
        self._held = self._play(groups, trainer)
        empty_id = trainer.eos_token_ids[0]
        counts = [count for _, count in groups]
        return _columns([row for held in zip(self._held, counts, strict=True) for row in self._rows(*held, empty_id)])

    def acknowledge(self) -> None:
        """Acknowledge what the last call gave; after a training this is left to do."""
        if self._held and self._stream is not None:
            self._stream.ack(self._held)
            self._held = []

    def close(self) -> None:
        """End the stream; what was not acknowledged comes again."""
        if self._stream is not None:
            self._stream.close()

    def _sync(self, trainer: Any) -> None:
        """New weights for a new step; all processes wait for it."""
        step = trainer.state.global_step
        if self._weights is None or step == self._synced_step:
            return
        if trainer.accelerator.is_main_process:
            with engine_parameters(trainer.accelerator.unwrap_model(trainer.model)) as parameters:
                self._weights.sync(parameters)
        trainer.accelerator.wait_for_everyone()
        self._synced_step = step

    def _play(self, groups: Sequence[tuple[Prompt, int]], trainer: Any) -> list[Batch]:
        """Batches of prompts with so many samples each, in their order."""
        task_ids: list[str] = []
        try:
            for prompt, count in groups:
                spec = _sampled(self._task(prompt), trainer.temperature, trainer.model.training)
                spec.update(task_id=next(self._task_ids), num_samples=count)
                # First, since a submit that failed may have been taken.
                task_ids.append(spec["task_id"])
                self._client.submit(spec)
            return self._gather(task_ids)
        except BaseException:
            cancel(self._client, task_ids)
            raise

    def _gather(self, task_ids: Sequence[str]) -> list[Batch]:
        """The batches of these tasks, in their order."""
        end = time.monotonic() + self._timeout_s
        if self._stream is None:
            self._stream = self._client.stream(self._consumer, max_unacked=1000)
        found: dict[str, Batch] = {}
        while len(found) < len(task_ids):
            batch = self._stream.next(timeout_s=end - time.monotonic())
            if batch.task_id in task_ids:
                found[batch.task_id] = batch
            else:
                batch.ack()
        return [found[task_id] for task_id in task_ids]

    def _rows(self, batch: Batch, count: int, empty_id: int) -> Iterator[dict[str, Any]]:
        """``count`` rows, also where the mesh has lost the group: it is then one trajectory of no session."""
        self._untrained.look_at(batch)
        sessions = [one for one in batch.trajectories if one.session_id]
        for trajectory in sessions:
            by_trained = sorted(trajectory.traces, key=_trained, reverse=True)
            others = [trace for trace in by_trained[1:] if _trained(trace)]
            self.counts["traces_left_out"] += len(others)
            self.counts["trained_tokens_left_out"] += sum(map(_trained, others))
            usable = by_trained and _trained(by_trained[0])
            self.counts["sessions_without_trace"] += not usable
            yield _row(trajectory, by_trained[0]) if usable else _empty_row(empty_id)
        lost = count - len(sessions)
        self.counts["sessions_lost"] += lost
        yield from (_empty_row(empty_id) for _ in range(lost))


def _groups(prompts: Sequence[Prompt], samples: int) -> Iterator[tuple[Prompt, int]]:
    """Neighbours that are equal, at most ``samples`` of them, with their number."""
    for prompt, same in itertools.groupby(prompts):
        count = sum(1 for _ in same)
        yield from ((prompt, min(samples, count - at)) for at in range(0, count, samples))


def _sampled(spec: Mapping[str, Any], temperature: float, training: bool) -> dict[str, Any]:
    """The task at this temperature, where it names none of its own. Another one is refused where it would be trained."""
    sampling = {"temperature": temperature, **(spec.get("sampling") or {})}
    if training and sampling["temperature"] != temperature:
        raise ValueError(
            f"sampling.temperature of a task is {sampling['temperature']:g}, and the trainer's is {temperature:g}: "
            "its loss would be that of another policy than the one that is sampled"
        )
    return {**spec, "sampling": sampling}


def _trained(trace: Trace) -> int:
    return int(np.count_nonzero(trace.loss_mask))


def _row(trajectory: Trajectory, trace: Trace) -> dict[str, Any]:
    return {
        "prompt_ids": trace.prompt_ids.tolist(),
        "completion_ids": trace.response_ids.tolist(),
        "logprobs": trace.logprobs.tolist(),
        "env_mask": trace.loss_mask.tolist(),
        "polar_reward": trajectory.reward_of(trace),
    }


def _empty_row(empty_id: int) -> dict[str, Any]:
    """A session that trains nothing: TRL wants a row for it.

    Its mask keeps it out of the loss. It is out of the baseline as long as every reward function says None of it, which
    ``refuse_unscored`` sees to.
    """
    return {
        "prompt_ids": [empty_id],
        "completion_ids": [empty_id],
        "logprobs": [0.0],
        "env_mask": [0],
        "polar_reward": None,
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
