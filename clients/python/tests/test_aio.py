"""The client for asyncio against the same servers as the other one: what differs is only who waits."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from functools import partial

import grpc
import pytest
from support import Garbled, Link, Server, Trajectories, batch
from test_client import Rollout

import polar_mesh
from polar_mesh import aio, errors
from polar_mesh.gen.polar.common.v1.session_pb2 import SESSION_STATE_ENDED, SESSION_STATE_RUNNING
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb

TASK = {"task_id": "t", "instruction": "do", "num_samples": 3, "harness": {"name": "pi"}}


both = pytest.mark.parametrize("transport", ["http", "grpc"])


def serve(stack, service):
    server = Server(service.register)
    stack.callback(server.stop)
    return server


def with_client(url, use, **options):
    """Run a coroutine with a client of both services at one address."""

    async def run():
        async with aio.Client(url, url, **options) as client:
            return await asyncio.wait_for(use(client), 60)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("sync", "other"),
    [(getattr(polar_mesh, name), getattr(aio, name)) for name in ("Client", "PolicyClient", "EvaluatorClient")],
)
def test_it_has_all_methods_with_the_same_arguments(sync, other):
    for name, method in inspect.getmembers(sync, inspect.isfunction):
        if name.startswith("_") or name == "close":
            continue
        same = getattr(other, name)
        assert list(inspect.signature(same).parameters) == list(inspect.signature(method).parameters), name
        assert same.__doc__


def test_calls_are_made_and_their_answers_read_as_by_the_other_client(stack):
    service = Rollout()
    server = serve(stack, service)

    async def use(client):
        submitted = await client.submit(TASK)
        assert list(submitted.session_ids) == ["t-0", "t-1", "t-2"]
        assert [len(one.session_ids) for one in await client.submit_many([TASK, TASK])] == [3, 3]
        # Three pages.
        assert [one.session_id for one in await client.list_sessions("t")] == ["t-0", "t-1", "t-2"]
        assert (await client.get_session("t-1")).waiting.message == "full"
        assert await client.retry("t", only="failed") == ["t-1"]
        assert (await client.drain("n", undo=True)).draining is False
        assert [queue.name for queue in await client.list_queues()] == ["default"]
        assert (await client.cancel_session("t-2")).state == SESSION_STATE_ENDED
        with pytest.raises(errors.NotFound):
            await client.get_task("other")
        with pytest.raises(errors.InvalidArgument) as caught:
            await client.submit({**TASK, "instruction": ""})
        assert [fault.field for fault in caught.value.fields] == ["instruction", "harness.name"]
        with pytest.raises(ValueError, match="everything.* infrastructure, failed, missing"):
            await client.retry("t", only="everything")

    with_client(server.url, use)


def test_a_client_is_of_the_loop_that_it_was_made_in(stack):
    server = serve(stack, Rollout())

    async def make():
        return aio.Client(server.url, server.url)

    client = asyncio.run(make())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(client.list_queues())


@both
def test_a_stream_is_of_the_loop_that_it_was_opened_in(stack, transport):
    server = serve(stack, Trajectories([batch(1), batch(2)]))

    async def first():
        client = aio.Client(server.url, server.url, transport=transport)
        stream = client.stream("trainer")
        await stream.next(timeout_s=20)
        return client, stream

    own, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    stack.callback(own.close)
    stack.callback(other.close)
    client, stream = own.run_until_complete(first())
    with pytest.raises(RuntimeError, match="another event loop"):
        other.run_until_complete(stream.next(timeout_s=1))
    own.run_until_complete(client.aclose())


def test_calls_run_at_once_and_are_repeated_when_the_server_is_away(stack):
    service = Rollout()
    server = serve(stack, service)
    service.hold_s = 0.5
    service.failures = [grpc.StatusCode.UNAVAILABLE] * 2

    async def use(client):
        began = time.monotonic()
        await asyncio.gather(*(client.submit({**TASK, "task_id": f"t-{i}"}) for i in range(4)))
        assert time.monotonic() - began < 4 * 0.5 + 1.5
        server.stop()
        threading.Timer(0.5, server.start).start()
        assert (await client.get_task("t", timeout_s=float("inf"))).spec.task_id == "t"

    with_client(server.url, use)
    assert service.calls == 6


def test_an_unreachable_server_is_unavailable_and_a_closed_client_is_cancelled():
    async def use(client):
        with pytest.raises(errors.Unavailable):
            await client.get_task("t", timeout_s=0.5)
        waiting = asyncio.ensure_future(client.get_task("t"))
        await asyncio.sleep(0.3)
        await client.aclose()
        with pytest.raises((errors.Cancelled, errors.Unavailable)):
            await waiting
        with pytest.raises(errors.Cancelled):
            await client.get_task("t")

    with_client("http://127.0.0.1:1", use)


def test_wait_sees_every_change_over_a_cut_connection(stack):
    service = Rollout()
    server = serve(stack, service)
    link = Link(server.port)
    stack.callback(link.close)

    async def use(client):
        seen = []
        async for change in client.watch("t"):
            seen.append((change.session.session_id, change.session.state))
            if len(seen) == 3:
                service.set("t-1", SESSION_STATE_RUNNING)
            if len(seen) == 4:
                link.cut()
                for name in ("t-0", "t-1", "t-2"):
                    service.set(name, SESSION_STATE_ENDED)
        assert len(seen) == len(set(seen)) == 7
        assert (await client.wait("t")).HasField("end_time")

    with_client(link.url, use)


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_wait_goes_on_where_its_watch_ends_before_the_task(stack, kind):
    service = Rollout()
    service.early_ends = 3
    server = serve(stack, service)
    other = polar_mesh.Client(server.url, server.url)
    stack.callback(other.close)

    async def use(client):
        wait = partial(asyncio.to_thread, other.wait) if kind == "blocking" else client.wait
        waiting = asyncio.ensure_future(wait("t", timeout_s=30))
        while service.watches < 4 and not waiting.done():
            await asyncio.sleep(0.01)
        for name in service.states:
            service.set(name, SESSION_STATE_ENDED)
        assert (await waiting).HasField("end_time")
        assert service.watches == 4

    with_client(server.url, use)


@pytest.mark.parametrize("early_ends", [0, 1_000_000])
def test_a_watch_that_takes_too_long_is_deadline_exceeded(stack, early_ends):
    service = Rollout()
    service.early_ends = early_ends
    server = serve(stack, service)

    async def use(client):
        with pytest.raises(errors.DeadlineExceeded, match="task t has not ended"):
            await client.wait("t", timeout_s=0.5)

    with_client(server.url, use)


@both
def test_each_batch_comes_once_over_cut_connections(stack, transport):
    service = Trajectories([batch(n, tokens=100_000) for n in range(1, 21)], progress_s=0.05)
    link = Link(serve(stack, service).port)
    stack.callback(link.close)

    async def use(client):
        got = []
        async with client.stream("trainer", max_unacked=4) as stream:
            async for one in stream:
                got.append(one.batch_id)
                assert one.trajectories[1].traces[0].response_ids[0] == one.batch_id * 1000 + 100
                if len(got) % 4 == 1:
                    link.cut()
                await stream.ack([one])
                if len(got) == 20:
                    break
        assert got == list(range(1, 21))

    with_client(link.url, use, transport=transport)
    assert service.acked == set(range(1, 21))
    assert service.streams > 3, "the link was cut for nothing"


@both
def test_a_wait_for_a_batch_can_end_and_be_cancelled_without_loss(stack, transport):
    service = Trajectories([])
    server = serve(stack, service)

    async def use(client):
        async with client.stream("trainer", max_unacked=1) as stream:
            with pytest.raises(errors.DeadlineExceeded):
                await stream.next(timeout_s=0.3)
            waiting = asyncio.ensure_future(stream.next())
            await asyncio.sleep(0.2)
            with pytest.raises(RuntimeError, match="another task waits"):
                await stream.next()
            waiting.cancel()
            await asyncio.sleep(0)
            service.add(batch(7))
            got = await stream.next(timeout_s=10)
            assert got.batch_id == 7
            with pytest.raises(TypeError, match="await stream.ack"):
                got.ack()
            await client.ack("trainer", [7])
            with pytest.raises(errors.DeadlineExceeded) as caught:
                await stream.next(timeout_s=0.1)
            assert caught.value.message == "no batch came in the time given", "it is held no more"
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()

    with_client(server.url, use, transport=transport)
    assert service.streams == 1, "a wait that ended must not cost the stream"


@both
def test_a_replaced_stream_ends_with_its_reason(stack, transport):
    server = serve(stack, Trajectories([]))

    async def use(client):
        old, new = client.stream("trainer"), client.stream("trainer")
        for stream in (old, new):
            with pytest.raises(errors.DeadlineExceeded):
                await stream.next(timeout_s=0.3)
        with pytest.raises(errors.Aborted) as caught:
            await old.next(timeout_s=5)
        assert caught.value.reason == "STREAM_REPLACED"

    with_client(server.url, use, transport=transport)


@both
def test_a_dropped_stream_is_closed(stack, transport):
    service = Trajectories([batch(1)])
    server = serve(stack, service)
    reported = []

    async def use(client):
        report_to(reported)
        await client.stream("trainer").next(timeout_s=10)
        await until(lambda: service.ended == 1, "the dropped stream goes on")

    with_client(server.url, use, transport=transport)
    gc.collect()
    assert reported == []


@both
def test_how_a_stream_broke_is_not_reported_where_it_is_dropped_before_it_asks(stack, transport):
    # Nothing comes behind the batch, so that what is read ahead is the end.
    service = Trajectories([batch(1)], progress_s=60)
    server = serve(stack, service)
    reported = []

    async def use(client):
        report_to(reported)
        stream = client.stream("trainer")
        await stream.next(timeout_s=10)
        server.stop()
        await until(lambda: stream._reader._coming.done(), "the stream goes on")  # noqa: F821
        del stream
        gc.collect()
        readers = (thread for thread in threading.enumerate() if thread.name == "polar-reader")
        await asyncio.gather(*(asyncio.to_thread(thread.join, 5) for thread in readers))

    with_client(server.url, use, transport=transport)
    assert reported == []


@both
def test_what_cannot_be_read_is_internal_and_the_next_stream_is_another(stack, transport):
    service = Garbled([batch(1)])
    server = serve(stack, service)

    async def use(client):
        async with client.stream("trainer") as stream:
            with pytest.raises(errors.Internal, match="could not be read") as caught:
                await stream.next(timeout_s=10)
            assert (caught.value.code, caught.value.retryable) == ("INTERNAL", False)
            assert (await stream.next(timeout_s=10)).batch_id == 1

    with_client(server.url, use, transport=transport)


def report_to(reported):
    """What asyncio says of errors that nobody asked for."""

    def handle(_, context):
        if "never retrieved" in context["message"]:
            reported.append(context)

    asyncio.get_running_loop().set_exception_handler(handle)


async def until(holds, otherwise):
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, otherwise
        await asyncio.sleep(0.05)


class Judged(Trajectories):
    """A stream whose policy version moves on after its batches were sent."""

    def __init__(self, batches):
        super().__init__(batches)
        self.nacked: list[tuple[int, int, str]] = []
        self.version = 5

    def AckTrajectories(self, request, context):
        answer = super().AckTrajectories(request, context)
        answer.policy_version = self.version
        return answer

    def NackTrajectories(self, request, context):
        given = zip(request.batch_ids, request.delivery_counts, strict=True)
        self.nacked += [(*one, request.reason) for one in given]
        return pb.NackTrajectoriesResponse()


def test_what_the_filter_drops_is_told_and_acknowledged_and_what_became_stale_is_given_back(stack):
    stale, dropped, kept = batch(1), batch(2), batch(3)
    for one, version in ((stale, 3), (kept, 5)):
        one.policy_version = 4
        for trajectory in one.trajectories:
            trajectory.policy_version_min = trajectory.policy_version_max = version
    dropped.dropped_reason = "zero_variance"
    stale.delivery_count = 2
    service = Judged([stale, dropped, kept])
    server = serve(stack, service)
    told = []

    async def use(client):
        service.seeks = 3
        rule = polar_mesh.Filter(staleness_max=1)
        async with client.stream("trainer", filter=rule, on_dropped=told.append) as stream:
            assert (await stream.next(timeout_s=10)).batch_id == 3
            assert stream.policy_version == 5
            assert stream.dropped == {"zero_variance": 1}

    with_client(server.url, use)
    assert service.nacked == [(1, 2, "stale at hand-over")]
    assert service.acked == {2}
    assert set(service.acked_seeks) == {3}
    assert [one.batch_id for one in told] == [2]
