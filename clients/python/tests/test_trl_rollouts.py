"""The part of the bridge to TRL's GRPOTrainer that needs no TRL."""

from __future__ import annotations

import asyncio
import functools
import pickle
from types import SimpleNamespace

import grpc
import pytest
from support import Server, Trajectories, abort, batch
from test_client import Rollout

from polar_mesh import Client, errors
from polar_mesh.bridges.trl import polar_reward, rollout_func, scored, worker

#: What the bridge asks a trainer for.
TRAINER = SimpleNamespace(
    num_generations=2,
    temperature=1.0,
    model=SimpleNamespace(training=True),
    state=SimpleNamespace(global_step=0),
    eos_token_ids=[0],
    reward_funcs=[polar_reward],
)
ROWS = {"polar_reward": [None, 0.0, 1.0], "prompts": ["a", "b", "c"], "trainer_state": None}


def brevity(prompts, weight=1.0, **_):
    return [weight * len(prompt) for prompt in prompts]


async def brevity_later(**columns):
    return brevity(**columns)


class Brevity:
    def __call__(self, **columns):
        return brevity(**columns)


class BrevityLater:
    async def __call__(self, **columns):
        return brevity(**columns)


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


@pytest.mark.parametrize("other", [brevity, functools.partial(brevity, weight=1), Brevity()])
def test_another_reward_is_none_where_the_session_has_none(other):
    assert scored(other)(**ROWS) == [None, 1, 1]
    assert pickle.loads(pickle.dumps(scored(other)))(**ROWS) == [None, 1, 1]


@pytest.mark.parametrize("other", [brevity_later, functools.partial(brevity_later), functools.partial(BrevityLater())])
def test_a_coroutine_function_stays_one(other):
    assert asyncio.run(scored(other)(**ROWS)) == [None, 1, 1]


def test_another_reward_keeps_its_name():
    others = [brevity, functools.partial(brevity_later, weight=2), Brevity()]
    assert [scored(other).__name__ for other in others] == ["brevity", "brevity_later", "Brevity"]


def test_a_reward_that_would_count_without_the_meshs_is_refused_before_anything_is_submitted(stack):
    service = Rollout()
    server = Server(service.register)
    stack.callback(server.stop)
    rollouts = rollout_func(stack.enter_context(Client(server.url, server.url)), lambda _: {"instruction": "a"})
    others = [polar_reward, scored(brevity_later), brevity, functools.partial(brevity), Brevity()]
    with pytest.raises(ValueError, match=r"from brevity, brevity, Brevity: .*scored\(\)"):
        rollouts(["a"], SimpleNamespace(**{**vars(TRAINER), "reward_funcs": others}))
    assert service.calls == 0
