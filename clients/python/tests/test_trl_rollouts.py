"""The part of the bridge to TRL's GRPOTrainer that needs no TRL."""

from __future__ import annotations

from types import SimpleNamespace

import grpc
import pytest
from support import Server, Trajectories, abort, batch
from test_client import Rollout

from polar_mesh import Client, errors
from polar_mesh.bridges.trl import rollout_func, worker

#: What the bridge asks a trainer for.
TRAINER = SimpleNamespace(
    num_generations=2,
    model=SimpleNamespace(training=True),
    state=SimpleNamespace(global_step=0),
    eos_token_ids=[0],
)


class Cancels(Rollout):
    """Notes what is cancelled, and refuses it: one that cannot be cancelled keeps no other from it."""

    def __init__(self, away=False):
        super().__init__()
        self.cancelled = []
        self.away = away

    def CancelTask(self, request, context):
        self.cancelled.append(request.task_id)
        if self.away:
            abort(context, grpc.StatusCode.UNAVAILABLE, "not now", "NATS_UNAVAILABLE")
        return super().CancelTask(request, context)


@pytest.mark.parametrize("submits", [2, 1])
def test_a_step_that_fails_leaves_no_task_running(stack, submits):
    """Its batches come too late, or its second task is refused: Ctrl-C is no other."""
    service, batches = Cancels(), Trajectories([batch(1)])
    server = Server(lambda server: (service.register(server), batches.register(server)))
    stack.callback(server.stop)
    client = stack.enter_context(Client(server.url, server.url))
    tasks = iter([{"instruction": "a"}, {"instruction": "b"}][:submits])
    rollouts = rollout_func(client, lambda _: next(tasks, {"instruction": ""}), timeout_s=0.3)
    stack.callback(rollouts.close)
    with pytest.raises(errors.DeadlineExceeded if submits == 2 else errors.InvalidArgument):
        rollouts(["a", "b", "c"][: 4 - submits], TRAINER)
    assert len(service.submits) == submits
    assert len(service.cancelled) == 2, "the second one may have been taken; the third was never told"
    assert set(service.submits) <= set(service.cancelled)


def test_where_nobody_answers_the_end_waits_for_one_cancellation(stack, monkeypatch):
    monkeypatch.setattr(worker, "CANCEL_S", 0.2)
    service = Cancels(away=True)
    server = Server(service.register)
    stack.callback(server.stop)
    worker.cancel(stack.enter_context(Client(server.url)), ["a", "b", "c"])
    assert set(service.cancelled) == {"a"}
