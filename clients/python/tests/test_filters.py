"""What a filter drops is not handed over, whoever drops it."""

from __future__ import annotations

import asyncio

import pytest
from support import Server, Trajectories, batch

from polar_mesh import Client, Filter, aio, errors


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_batch_that_an_older_mesh_did_not_filter_is_not_handed_over(stack, transport):
    dropped, mine, other = batch(1), batch(2), batch(3)
    dropped.task_id, mine.task_id, other.task_id = "run8-a", "run7-a", "run8-b"
    dropped.dropped_reason = "other_task"
    service = Trajectories([dropped, mine, other])
    server = Server(service.register)
    stack.callback(server.stop)
    client = stack.enter_context(Client(trajectory_url=server.url, transport=transport))
    stream = client.stream("trainer", filter=Filter(task_id_prefix="run7-"))
    assert stream.next(timeout_s=20).task_id == "run7-a"
    for _ in range(2):
        with pytest.raises(errors.FailedPrecondition, match="older.*run8-b") as caught:
            stream.next(timeout_s=20)
        assert [fault.field for fault in caught.value.fields] == ["filter.task_id_prefix"]
    assert service.acked == {1}


def test_nor_is_it_in_asyncio(stack):
    other = batch(1)
    other.task_id = "run8-a"
    server = Server(Trajectories([other]).register)
    stack.callback(server.stop)

    async def use():
        async with aio.Client(server.url, server.url) as client:
            async with client.stream("trainer", filter=Filter(task_id_prefix="run7-")) as stream:
                await stream.next(timeout_s=20)

    with pytest.raises(errors.FailedPrecondition, match="older.*run8-a"):
        asyncio.run(use())
