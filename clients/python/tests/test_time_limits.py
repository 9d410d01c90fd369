"""Times that are none: with NaN no time is ever over, and who waits would wait for ever."""

from __future__ import annotations

import asyncio

import pytest
from support import free_port

import polar_mesh
from polar_mesh import aio
from polar_mesh.evaluator import EvaluatorClient

NAN = float("nan")
#: Nobody answers there; none of it comes so far.
NOWHERE = f"http://127.0.0.1:{free_port()}"


def calls(client):
    """What takes a time, by its argument's name."""
    return [
        lambda: client.get_task("t", timeout_s=NAN),
        lambda: client.wait("t", timeout_s=NAN),
        lambda: client.stream("c").next(NAN),
        lambda: client.ack("c", [1], timeout_s=NAN),
    ]


def test_are_refused_by_the_blocking_client():
    with polar_mesh.Client(NOWHERE, NOWHERE, timeout_s=5) as client:
        for call in calls(client):
            with pytest.raises(ValueError, match="^timeout_s: must be a number of seconds, not nan"):
                call()
    with pytest.raises(ValueError, match="^reconnect_s: "):
        polar_mesh.Client(NOWHERE, reconnect_s=NAN)
    with pytest.raises(ValueError, match="^timeout_s: "), polar_mesh.Client(NOWHERE, timeout_s=NAN) as client:
        client.get_task("t")
    with EvaluatorClient(NOWHERE) as client, pytest.raises(ValueError, match="^timeout_s: "):
        client.evaluate_session("s", timeout_s=NAN)


def test_are_refused_by_the_other_one():
    async def run():
        async with aio.Client(NOWHERE, NOWHERE, timeout_s=5) as client:
            for call in calls(client):
                with pytest.raises(ValueError, match="^timeout_s: must be a number of seconds, not nan"):
                    await asyncio.wait_for(call(), 5)

    asyncio.run(run())
