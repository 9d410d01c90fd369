"""What no request takes is refused by its name, before any call."""

from __future__ import annotations

import asyncio
import inspect
import math

import pytest

from polar_mesh import Client, EvaluatorClient, Filter, PolicyClient, aio

CLIENTS, POLICY_CLIENTS = (Client, aio.Client), (PolicyClient, aio.PolicyClient)
EVALUATOR_CLIENTS = (EvaluatorClient, aio.EvaluatorClient)
REFUSED = [
    (CLIENTS, "max_unacked", lambda client: client.stream("trainer", max_unacked=-1)),
    (CLIENTS, "max_unacked_tokens", lambda client: client.stream("trainer", max_unacked_tokens=-1)),
    (CLIENTS, "message_tokens", lambda client: client.stream("trainer", message_tokens=1.5)),
    (CLIENTS, "staleness_max", lambda client: client.stream("trainer", filter=Filter(staleness_max=-1))),
    (CLIENTS, "consumer", lambda client: client.stream("\ud800")),
    (CLIENTS, "batch_ids", lambda client: client.ack("trainer", [3, -1])),
    (CLIENTS, "delay_s", lambda client: client.nack("trainer", [3], delay_s=-1)),
    (CLIENTS, "delay_s", lambda client: client.nack("trainer", [3], delay_s=math.inf)),
    (CLIENTS, "to", lambda client: client.seek("trainer", -1)),
    (CLIENTS, "attempt", lambda client: client.export_session("s", attempt=-1)),
    (CLIENTS, "attempt", lambda client: client.export_session("s", attempt=0)),
    (CLIENTS, "task_id", lambda client: client.get_task(3)),
    (CLIENTS, "task_id", lambda client: client.list_sessions(3)),
    (CLIENTS, "task_id", lambda client: client.cancel(3)),
    (CLIENTS, "task_id", lambda client: client.retry(3)),
    (CLIENTS, "task_id", lambda client: client.wait(3)),
    (CLIENTS, "request_id", lambda client: client.submit({}, request_id=3)),
    (CLIENTS, "request_id", lambda client: client.submit_many([{}], request_ids=[3])),
    (CLIENTS, "session_id", lambda client: client.get_session(3)),
    (CLIENTS, "session_id", lambda client: client.cancel_session(3)),
    (CLIENTS, "session_id", lambda client: client.get_trajectory(3)),
    (CLIENTS, "node_id", lambda client: client.drain(3)),
    (CLIENTS, "consumer", lambda client: client.seek(3, "oldest")),
    (CLIENTS, "consumer", lambda client: client.delete_consumer(3)),
    (POLICY_CLIENTS, "policy_version", lambda client: client.publish_version(-1)),
    (POLICY_CLIENTS, "policy_version", lambda client: client.resume(policy_version=-1)),
    (POLICY_CLIENTS, "policy_version", lambda client: client.resume(policy_version=0)),
    (EVALUATOR_CLIENTS, "session_id", lambda client: client.evaluate_session(3)),
]


@pytest.mark.parametrize("given", [{"timeout_s": math.inf}, {"timeout_s": "60"}, {"ttl_s": 1e20}, {"ttl_s": None}])
def test_a_time_that_no_pause_takes_is_named(given):
    with PolicyClient() as client, pytest.raises((ValueError, TypeError), match=f"^{[*given][0]}: "):
        client.paused(**given).__enter__()


@pytest.mark.parametrize(("clients", "argument", "call"), REFUSED)
def test_an_argument_that_no_request_takes_is_named(clients, argument, call):
    blocking, other = clients
    with blocking() as client, pytest.raises((ValueError, TypeError), match=f"^{argument}: "):
        call(client)

    async def use():
        async with other() as client:
            made = call(client)
            await made if inspect.isawaitable(made) else None

    with pytest.raises((ValueError, TypeError), match=f"^{argument}: "):
        asyncio.run(use())
