"""Sessions as the rollouts of AsyncGRPOTrainer: tasks are submitted ahead, and what is trained comes over a queue."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ... import rewards
from ...batches import Batch
from ...client import Client
from ...errors import DeadlineExceeded, PolarError, Unavailable
from ...policy import PolicyClient
from ..task_ids import is_of, new_task_ids
from .untrained import Untrained

#: Waiting for a batch, or for room in the queue, before looking whether the worker is to stop.
POLL_S = 0.2
#: For each task that is cancelled at the end; the first one for which that is not enough is the last.
CANCEL_S = 5.0
#: TRL does not tell which samples a step trained. One that was taken from the queue waits in an open micro-batch and in
#: a prefetched one at most; each sync of weights comes after a step, which trains at least one micro-batch.
ACK_AFTER_SYNCS = 3
#: As many batches as a stream may have unacknowledged. Where so many are given in so few syncs, the oldest is
#: acknowledged early: no more would come otherwise.
UNACKED_MAX = 1000


class RolloutWorker:
    """``RolloutWorkerProtocol``: keeps ``tasks_max`` tasks running and gives the trainer their traces.

    Every trace is a sample, so a session that forked has several; TRL's loss counts each token the same, which does not
    depend on forks. A batch is acknowledged when it must have been trained; what a killed trainer held comes again to
    the next one with the same ``consumer``, and TRL drops it where it is too old by then. Groups that train nothing, whose
    samples the trainer waits for, are told in the log of ``polar_mesh``.

    Args:
        tasks: Mappings as for ``Client.submit``, without ``task_id``; gone through again and again.
        policy: Where the mesh's policy version is asked for, to tell how old a sample is in the trainer's count of
            weights; None: both count alike.
        consumer: Name of the durable cursor; one a training.
        tasks_max: Tasks submitted whose batch has not come.
        queue_max: Samples in the queue.
        estimator: How the sessions of a group are compared, see ``polar_mesh.rewards``.
    """

    def __init__(
        self,
        client: Client,
        tasks: Iterable[Mapping[str, Any]],
        *,
        policy: PolicyClient | None = None,
        consumer: str = "trl-async",
        tasks_max: int = 8,
        queue_max: int = 1024,
        estimator: rewards.Estimator = "group_norm",
    ) -> None:
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(queue_max)
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self._client = client
        self._policy = policy
        self._consumer = consumer
        self._tasks_max = tasks_max
        self._estimator: rewards.Estimator = estimator
        self._tasks = itertools.cycle(tasks)
        self._task_ids = new_task_ids(consumer)
        self._running: set[str] = set()
        self._groups = itertools.count()
        self._untrained = Untrained()
        #: Batches given and not acknowledged, with the number of samples put until then.
        self._given: deque[tuple[int, Batch]] = deque()
        self._put = 0
        #: Samples that had been taken at the last syncs.
        self._taken: deque[int] = deque(maxlen=ACK_AFTER_SYNCS)
        #: What the mesh's version is ahead of the trainer's count.
        self._version_ahead = 0
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._alive_time = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="polar-trl", daemon=True)

    def start(self) -> None:
        """Begin to submit tasks. Called by the trainer when the first weights are at the engines."""
        self._thread.start()

    def stop(self) -> None:
        """Stop and cancel what still runs. Called by the trainer at its end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def update_model_version(self, version: int) -> None:
        """The trainer's count of weights that the engines have now."""
        if self._policy is not None:
            self._version_ahead = self._policy.get_policy().policy.policy_version - version
        self._taken.append(self._put - self.rollout_buffer.qsize())

    def check_health(self, stale_after_s: float) -> None:
        """Raise where the worker failed, or did not turn for so long."""
        if self._failure is not None:
            raise RuntimeError("the rollouts ended") from self._failure
        silent_s = time.monotonic() - self._alive_time
        if self._thread.ident is not None and silent_s > stale_after_s:
            raise RuntimeError(f"the rollouts stand still for {silent_s:.0f} s")

    def _run(self) -> None:
        try:
            with self._client.stream(self._consumer, max_unacked=UNACKED_MAX) as stream:
                while self._turns():
                    self._submit()
                    self._acknowledge()
                    try:
                        batch = stream.next(timeout_s=POLL_S)
                    except DeadlineExceeded:
                        continue
                    self._give(batch)
        except Exception as error:  # The trainer is told by check_health.
            self._failure = error
        finally:
            cancel(self._client, self._running)

    def _turns(self) -> bool:
        self._alive_time = time.monotonic()
        return not self._stop.is_set()

    def _submit(self) -> None:
        while len(self._running) < self._tasks_max:
            spec = {**next(self._tasks), "task_id": next(self._task_ids)}
            # First, since a submit that failed may have been taken.
            self._running.add(spec["task_id"])
            self._client.submit(spec)

    def _give(self, batch: Batch) -> None:
        self._running.discard(batch.task_id)
        own = is_of(self._consumer, batch.task_id)
        if own:
            self._untrained.look_at(batch)
        for sample in self._samples(batch) if own else ():
            while self._turns():
                try:
                    self.rollout_buffer.put(sample, timeout=POLL_S)
                    self._put += 1
                    break
                except queue.Full:
                    self._acknowledge()
        self._given.append((self._put, batch))

    def _acknowledge(self) -> None:
        trained = self._taken[0] if len(self._taken) == ACK_AFTER_SYNCS else 0
        while self._given and (self._given[0][0] <= trained or len(self._given) >= UNACKED_MAX):
            self._given[0][1].ack()
            self._given.popleft()

    def _samples(self, batch: Batch) -> Iterator[Any]:
        from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

        group_id = next(self._groups)
        outcomes = rewards.outcome_rewards(batch)
        metrics = {"reward_std": float(np.nanstd(outcomes)) if not np.isnan(outcomes).all() else float("nan")}
        self.metrics_queue.put({"polar/sessions_without_reward_total": float(np.isnan(outcomes).sum())})
        versions = {one.session_id: one.policy_version_min for one in batch.trajectories}
        for sample in rewards.samples([batch], estimator=self._estimator):
            trained = sample.loss_mask != 0
            context = np.zeros(len(sample.prompt_ids))
            yield RolloutSample(
                prompt=[],
                completion=[],
                input_ids=np.concatenate([sample.prompt_ids, sample.response_ids]).astype(np.int64),
                completion_mask=np.concatenate([context, trained]).astype(np.int64),
                old_log_probs=np.concatenate([context, sample.logprobs]).astype(np.float32),
                advantage=float(sample.advantages[trained][0]),
                model_version=versions[sample.trajectory.session_id] - self._version_ahead,
                group_id=group_id,
                metrics={"reward": sample.trajectory.reward_of(sample.trace), **metrics},
                enqueued_at=time.time(),
            )


def cancel(client: Client, task_ids: Iterable[str]) -> None:
    """What still runs. One that is refused keeps no other from it; where nobody answers, all end by their budgets."""
    for task_id in task_ids:
        try:
            client.cancel(task_id, timeout_s=CANCEL_S)
        except (Unavailable, DeadlineExceeded):
            return
        except PolarError:
            continue
