"""Pauses, by both clients: whatever happens in a block, calls go on behind it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest
from support import Server, abort

from polar_mesh import PolicyClient, aio, errors
from polar_mesh.gen.polar.event.v1.policy_pb2 import PAUSE_MODE_ABORT_AND_RETRY, PAUSE_MODE_DRAIN
from polar_mesh.gen.polar.llm_proxy.v1 import policy_service_pb2 as pb
from polar_mesh.gen.polar.llm_proxy.v1.policy_service_pb2_grpc import (
    PolicyServiceServicer,
    add_PolicyServiceServicer_to_server,
)


class Policy(PolicyServiceServicer):
    """Pauses and resumes, as told; versions below 4 are refused."""

    def __init__(self):
        self.told = []

    def register(self, server):
        add_PolicyServiceServicer_to_server(self, server)

    def Pause(self, request, context):
        self.told.append((request.mode, request.timeout.seconds))
        return pb.PauseResponse(policy={"pause_id": request.pause_id})

    def Resume(self, request, context):
        if 0 < request.policy_version < 4:
            abort(context, grpc.StatusCode.INVALID_ARGUMENT, "must be at least 4", "INVALID_REQUEST")
        self.told.append((request.policy_version, request.weight_version))
        return pb.ResumeResponse()

    def PublishVersion(self, request, context):
        return pb.PublishVersionResponse(policy={"policy_version": request.policy_version})


class Awaited:
    """The blocking client, as the other one is used."""

    def __init__(self, url):
        self._client = PolicyClient(url)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self._client.close()

    async def publish_version(self, *args):
        return self._client.publish_version(*args)

    @asynccontextmanager
    async def paused(self, *args, **kwargs):
        with self._client.paused(*args, **kwargs) as pause:
            yield pause


@pytest.fixture(params=[Awaited, aio.PolicyClient])
def told(request, stack):
    """Runs a coroutine with a client; gives what the mesh was told."""
    service = Policy()
    server = Server(service.register)
    stack.callback(server.stop)

    def run(use):
        async def with_client():
            async with request.param(server.url) as policy:
                await use(policy)

        asyncio.run(with_client())
        return service.told

    return run


def test_a_pause_ends_with_the_block_and_names_the_weights_unless_it_raises(told):
    async def use(policy):
        assert (await policy.publish_version(4, "step-4")).policy_version == 4
        async with policy.paused("abort_and_retry", timeout_s=7) as pause:
            pause.publish(5, "step-5")
        with pytest.raises(KeyError):
            async with policy.paused() as pause:
                pause.publish(6)
                raise KeyError

    assert told(use) == [(PAUSE_MODE_ABORT_AND_RETRY, 7), (5, "step-5"), (PAUSE_MODE_DRAIN, 60), (0, "")]


@pytest.mark.parametrize(("version", "error"), [(3, errors.InvalidArgument), ("5", TypeError)])
def test_a_version_that_is_refused_holds_calls_no_longer(told, version, error):
    async def use(policy):
        with pytest.raises(error):
            async with policy.paused() as pause:
                pause.publish(version)

    assert told(use) == [(PAUSE_MODE_DRAIN, 60), (0, "")]


def test_a_block_that_outlasts_its_pause_is_warned(told):
    async def use(policy):
        with pytest.warns(RuntimeWarning, match="ended by itself after ttl_s=0.1"):
            async with policy.paused(ttl_s=0.1) as pause:
                await asyncio.sleep(0.3)
                pause.publish(5)

    assert told(use) == [(PAUSE_MODE_DRAIN, 60), (5, "")]


def test_another_mode_is_refused_before_any_call(told):
    async def use(policy):
        with pytest.raises(ValueError, match="drain, abort_and_retry, keep"):
            async with policy.paused("stop"):
                pass

    assert told(use) == []
