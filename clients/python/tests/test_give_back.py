"""Batches that are given back come again, also where a new connection has brought them a second time."""

from __future__ import annotations

import asyncio

import pytest
from support import Link, Server, Trajectories, batch

from polar_mesh import Client, aio
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb


class GivenBack(Trajectories):
    """Counts deliveries, and takes back those that it is told of: a batch that was sent again since then stays where it is."""

    def __init__(self, batches):
        super().__init__(batches)
        self.given_back: list[int] = []
        self._again: set[int] = set()

    def StreamTrajectories(self, request, context):
        for message in super().StreamTrajectories(request, context):
            if message.HasField("batch"):
                message.batch.delivery_count = self.delivered.count(message.batch.batch_id)
                message.batch.nack_count = self.given_back.count(message.batch.batch_id)
            yield message

    def NackTrajectories(self, request, context):
        with self._changed:
            for batch_id, count in zip(request.batch_ids, request.delivery_counts, strict=True):
                if self.delivered.count(batch_id) <= count:
                    self.given_back.append(batch_id)
                    self._again.add(batch_id)
            self._changed.notify_all()
        return pb.NackTrajectoriesResponse()

    def _ready(self, request, sent):
        sent -= self._again
        self._again.clear()
        return super()._ready(request, sent)


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_what_is_given_back_comes_again_though_another_connection_has_brought_it_since(stack, kind):
    service = GivenBack([batch(1)])
    server = Server(service.register)
    stack.callback(server.stop)
    link = Link(server.port)
    stack.callback(link.close)

    async def use(following, give_back):
        held = await following()
        link.cut()
        service.add(batch(2))
        other = await following()
        await give_back(held)
        again = await following()
        assert [one.batch_id for one in (held, other, again)] == [1, 2, 1]
        assert [one.delivery_count for one in (held, again)] == [1, 3]
        # The answer to a call was lost, say.
        await give_back(held)

    async def blocking():
        with Client(link.url, link.url) as client, client.stream("trainer") as stream:
            await use(lambda: asyncio.to_thread(stream.next, 20), lambda held: asyncio.to_thread(held.nack))

    async def other():
        async with aio.Client(link.url, link.url) as client, client.stream("trainer") as stream:
            await use(lambda: stream.next(20), lambda held: stream.nack([held]))

    asyncio.run(blocking() if kind == "blocking" else other())
    assert service.given_back == [1]


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_what_could_not_be_given_back_is_still_held(stack, kind):
    service = GivenBack([batch(1)])
    server = Server(service.register)
    stack.callback(server.stop)
    link = Link(server.port)
    stack.callback(link.close)

    async def use(following, give_back):
        held = await following()
        with pytest.raises(ValueError, match="delay_s"):
            await give_back(held, -1.0)
        link.cut()
        service.add(batch(2))
        assert (await following()).batch_id == 2, "the new connection brings both"
        await give_back(held, 0.0)
        assert (await following()).batch_id == 1

    async def blocking():
        with Client(link.url, link.url) as client, client.stream("trainer") as stream:
            await use(lambda: asyncio.to_thread(stream.next, 20), lambda held, s: asyncio.to_thread(held.nack, s))

    async def other():
        async with aio.Client(link.url, link.url) as client, client.stream("trainer") as stream:
            await use(lambda: stream.next(20), lambda held, s: stream.nack([held], s))

    asyncio.run(blocking() if kind == "blocking" else other())
    assert service.given_back == [1]
