"""Pauses, by both clients: whatever happens in a block, calls go on behind it."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import asynccontextmanager

import grpc
import pytest
from support import Server, abort

from polar_mesh import PolicyClient, aio, errors
from polar_mesh.gen.polar.event.v1.policy_pb2 import PAUSE_MODE_ABORT_AND_RETRY, PAUSE_MODE_DRAIN, Policy
from polar_mesh.gen.polar.llm_proxy.v1 import policy_service_pb2 as pb
from polar_mesh.gen.polar.llm_proxy.v1.policy_service_pb2_grpc import (
    PolicyServiceServicer,
    add_PolicyServiceServicer_to_server,
)


class Policies(PolicyServiceServicer):
    """Pauses and resumes, as told."""

    def __init__(self):
        self.told = []
        #: Versions below are refused.
        self.version_min = 4
        #: What calls in flight take to their end.
        self.drain_s = 0.0
        self._policy = Policy()

    def register(self, server):
        add_PolicyServiceServicer_to_server(self, server)

    def Pause(self, request, context):
        if request.timeout.seconds == 99:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, "another one is in progress", "PAUSE_IN_PROGRESS")
        self.told.append((request.mode, request.timeout.seconds))
        start_ms = _now_ms()
        expire_ms = start_ms + request.ttl.ToMilliseconds()
        pauses = [{"start_ms": start_ms}]
        self._policy = Policy(pause_id=request.pause_id, pause_expire_ms=expire_ms, pauses=pauses)
        time.sleep(self.drain_s)
        return pb.PauseResponse(policy=self._policy)

    def Resume(self, request, context):
        if 0 < request.policy_version < self.version_min:
            told = f"must be at least {self.version_min}"
            abort(context, grpc.StatusCode.INVALID_ARGUMENT, told, "INVALID_REQUEST")
        self.told.append((request.policy_version, request.weight_version))
        (pause,) = self._policy.pauses
        end_ms = min(_now_ms(), self._policy.pause_expire_ms)
        return pb.ResumeResponse(policy={"pauses": [{"start_ms": pause.start_ms, "end_ms": end_ms}]})

    def PublishVersion(self, request, context):
        return pb.PublishVersionResponse(policy={"policy_version": request.policy_version})


def _now_ms():
    return time.time_ns() // 1_000_000


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
    service = Policies()
    server = Server(service.register)
    stack.callback(server.stop)

    def run(use, drain_s=0.0):
        async def with_client():
            async with request.param(server.url) as policy:
                await use(policy)

        service.drain_s = drain_s
        asyncio.run(with_client())
        return service.told

    return run


@pytest.mark.filterwarnings("error")
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


@pytest.mark.parametrize(("version", "error"), [(3, errors.InvalidArgument), ("5", TypeError), (0, ValueError)])
def test_a_version_that_is_refused_holds_calls_no_longer(told, version, error):
    async def use(policy):
        with pytest.raises(error):
            async with policy.paused() as pause:
                pause.publish(version)

    assert told(use) == [(PAUSE_MODE_DRAIN, 60), (0, "")]


@pytest.mark.parametrize(("drain_s", "ttl_s"), [(0, 0.1), (0.3, 0.5)])
def test_a_block_that_outlasts_its_pause_is_warned(told, drain_s, ttl_s):
    """It has begun when calls are held, and not when the last one has come to its end."""

    async def use(policy):
        with pytest.warns(RuntimeWarning, match=f"ended by itself after ttl_s={ttl_s}"):
            async with policy.paused(ttl_s=ttl_s) as pause:
                await asyncio.sleep(0.3)
                pause.publish(5)

    assert told(use, drain_s) == [(PAUSE_MODE_DRAIN, 60), (5, "")]


def test_a_pause_that_is_broken_off_before_it_is_reached_is_ended(told, request):
    """By a signal's handler, or by the end of the task that waits for it: the mesh may have begun it."""

    async def use(policy):
        async with policy.paused():
            pytest.fail("it is not reached")

    async def broken_off(policy):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(use(policy), 0.1)

    def handle(*_):
        raise asyncio.TimeoutError

    before = signal.signal(signal.SIGALRM, handle)
    request.addfinalizer(lambda: signal.signal(signal.SIGALRM, before))
    request.addfinalizer(lambda: signal.setitimer(signal.ITIMER_REAL, 0))
    if "Awaited" in request.node.name:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    assert told(broken_off, drain_s=0.5) == [(PAUSE_MODE_DRAIN, 60), (0, "")]


def test_a_pause_that_is_refused_is_not_ended(told):
    async def use(policy):
        with pytest.raises(errors.FailedPrecondition, match="another one is in progress"):
            async with policy.paused(timeout_s=99):
                pytest.fail("it is refused")

    assert told(use) == []


def test_another_mode_is_refused_before_any_call(told):
    async def use(policy):
        with pytest.raises(ValueError, match="drain, abort_and_retry, keep"):
            async with policy.paused("stop"):
                pass

    assert told(use) == []
