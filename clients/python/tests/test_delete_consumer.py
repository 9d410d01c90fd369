"""Deleting a consumer, which is safe to repeat: also where it was deleted and the answer was lost."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from support import Server, Trajectories, abort

from polar_mesh import Client, aio, errors
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb


class Consumers(Trajectories):
    """Has some consumers; the answers to its first calls are lost."""

    def __init__(self, lost: int) -> None:
        super().__init__([])
        self.names = {"trainer"}
        self.lost = lost

    def DeleteConsumer(self, request, context):
        known = request.consumer in self.names
        self.names.discard(request.consumer)
        if self.lost:
            self.lost -= 1
            again = RetryInfo()
            again.retry_delay.FromMilliseconds(1)
            abort(context, grpc.StatusCode.UNAVAILABLE, "lost", "NATS_UNAVAILABLE", again)
        if not known:
            abort(context, grpc.StatusCode.NOT_FOUND, "no such consumer", "NOT_FOUND")
        return pb.DeleteConsumerResponse()


def blocking(url, consumer):
    with Client(trajectory_url=url) as client:
        client.delete_consumer(consumer)


def other(url, consumer):
    async def use():
        async with aio.Client(trajectory_url=url) as client:
            await client.delete_consumer(consumer)

    asyncio.run(use())


@pytest.mark.parametrize("delete", [blocking, other])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_consumer_is_deleted_whatever_answers_are_lost(stack, delete, lost):
    service = Consumers(lost)
    server = Server(service.register)
    stack.callback(server.stop)
    delete(server.url, "trainer")
    assert service.names == set()
    with pytest.raises(errors.NotFound):
        delete(server.url, "trainer")
