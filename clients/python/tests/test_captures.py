"""Sessions that run in the caller's process: what is asked of the mesh, and when; by both clients."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timezone

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from support import Server, abort
from test_client import Rollout

import polar_mesh
from polar_mesh import aio, errors, limits
from polar_mesh.gen.polar.common.v1 import session_pb2 as sessions
from polar_mesh.gen.polar.scheduler.v1 import external_session_pb2 as pb


class External(Rollout):
    """A task's sessions; requests are kept, and an equal one gets the same session."""

    def __init__(self, sessions: int = 2, lost: tuple[str, ...] = ("s-1",)) -> None:
        super().__init__()
        self.sessions = sessions
        #: They are not open any more when they are closed.
        self.lost = lost
        self.opened: dict[str, pb.OpenSessionResponse] = {}
        self.closed: list[pb.CloseSessionRequest] = []
        self.cancelled: list[str] = []
        self.renewed: list[tuple[str, int]] = []
        self.leases: list[Duration] = []

    def OpenSession(self, request, context):
        index = len(self.opened)
        if request.HasField("lease"):
            self.leases.append(request.lease)
        if request.request_id not in self.opened and index == self.sessions:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, "none waits", "NO_SESSION_WAITS")
        session = sessions.Session(session_id=f"s-{index}", task_id=request.task_id, attempt=1, sample_index=index)
        answer = pb.OpenSessionResponse(session=session, api_key="key", instruction="do")
        answer.openai_url, answer.base_url = "http://h/s/key/v1", "http://h/s/key"
        answer.env["OPENAI_BASE_URL"] = answer.openai_url
        answer.expire_time.FromSeconds(60)
        answer = self.opened.setdefault(request.request_id, answer)
        if self.failures:
            context.abort(self.failures.pop(0), "broken")
        return answer

    def CloseSession(self, request, context):
        self.closed.append(request)
        if request.reward != request.reward:
            abort(context, grpc.StatusCode.INVALID_ARGUMENT, "reward must be a finite number", "INVALID_REQUEST")
        if request.session_id in self.lost:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, "not open", "SESSION_CLOSED")
        return pb.CloseSessionResponse(session=sessions.Session(session_id=request.session_id))

    def RenewSession(self, request, context):
        self.renewed.append((request.session_id, request.attempt))
        if self.failures:
            context.abort(self.failures.pop(0), "broken")
        if request.session_id in self.lost:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, "not open", "SESSION_CLOSED")
        return pb.RenewSessionResponse()

    def CancelSession(self, request, context):
        self.cancelled.append(request.session_id)
        return super().CancelSession(request, context)


@pytest.fixture
def service(stack):
    external = External()
    server = Server(external.register)
    stack.callback(server.stop)
    external.url = server.url
    return external


class Sync:
    """The blocking client in the place of the other one."""

    def __init__(self, url: str) -> None:
        self.client = polar_mesh.Client(url)

    async def run(self, body, *args, **options):
        with self.client, self.client.capture(*args, **options) as session:
            return body(session)


class Async:
    def __init__(self, url: str) -> None:
        self.url = url

    async def run(self, body, *args, **options):
        async with aio.Client(self.url) as client, client.capture(*args, **options) as session:
            return body(session)


both = pytest.mark.parametrize("kind", [Sync, Async])


@both
def test_a_capture_submits_opens_and_closes_with_the_reward(service, kind):
    # The answer is lost once: the same session comes again.
    service.failures.append(grpc.StatusCode.UNAVAILABLE)

    def work(session):
        session.reward = 0.5
        return session

    session = asyncio.run(kind(service.url).run(work, model="m", instruction="say", run_s=90, num_samples=2))
    [spec] = [request.spec for request in service.submits.values()]
    assert (spec.harness.name, spec.harness.model_name, spec.num_samples) == ("external", "m", 2)
    assert (spec.instruction, spec.budgets.run.seconds) == ("say", 90)
    [request_id] = service.opened
    assert len(request_id) >= 32
    assert (session.task_id, session.session_id, session.sample_index) == (spec.task_id, "s-0", 0)
    assert (session.base_url, session.root_url) == ("http://h/s/key/v1", "http://h/s/key")
    assert session.env == {"OPENAI_BASE_URL": "http://h/s/key/v1"}
    assert session.expire_time == datetime.fromtimestamp(60, timezone.utc)
    assert "key" not in repr(session).replace("/key", "")
    [end] = service.closed
    assert (end.session_id, end.attempt, end.outcome, end.reward) == ("s-0", 1, sessions.OUTCOME_COMPLETED, 0.5)


@both
def test_a_task_that_is_there_is_opened_only(service, kind):
    asyncio.run(kind(service.url).run(lambda session: None, "t"))
    assert (service.submits, [request.HasField("reward") for request in service.closed]) == ({}, [False])


@both
def test_what_is_raised_closes_it_as_failed_without_a_reward(service, kind):
    def broken(session):
        session.reward = 1.0
        raise KeyError("x" * 3000)

    with pytest.raises(KeyError):
        asyncio.run(kind(service.url).run(broken, "t"))
    [end] = service.closed
    assert (end.outcome, end.HasField("reward")) == (sessions.OUTCOME_HARNESS_ERROR, False)
    assert end.message.startswith("KeyError: ")
    assert len(end.message) == 2000

    # What cannot be closed any more does not hide what was raised.
    with pytest.raises(KeyError):
        asyncio.run(kind(service.url).run(broken, "t"))


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


@both
@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ValueError("\N{GRINNING FACE}" * 3000), "ValueError: " + "\N{GRINNING FACE}" * 994),
        (ValueError("file \udcff"), "ValueError: file ?"),
        (Unspeakable(), "Unspeakable"),
    ],
)
def test_what_is_raised_is_told_as_far_as_the_mesh_takes_it(service, kind, raised, told):
    def broken(session):
        raise raised

    with pytest.raises(type(raised)):
        asyncio.run(kind(service.url).run(broken, "t"))
    assert [end.message for end in service.closed] == [told]


@both
@pytest.mark.parametrize(("reward", "error"), [(float("nan"), errors.InvalidArgument), ("good", TypeError)])
def test_what_is_no_reward_cancels_it(service, kind, reward, error):
    def work(session):
        session.reward = reward

    with pytest.raises(error):
        asyncio.run(kind(service.url).run(work, "t"))
    assert service.cancelled == ["s-0"]


@both
def test_an_interrupt_cancels_it(service, kind):
    def interrupted(session):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(kind(service.url).run(interrupted, "t"))
    assert (service.cancelled, service.closed) == (["s-0"], [])


@both
def test_who_comes_too_late_is_told(service, kind):
    asyncio.run(kind(service.url).run(lambda session: None, "t"))
    with pytest.raises(errors.FailedPrecondition) as caught:
        asyncio.run(kind(service.url).run(lambda session: None, "t"))
    assert caught.value.reason == "SESSION_CLOSED"
    with pytest.raises(errors.FailedPrecondition) as caught:
        asyncio.run(kind(service.url).run(lambda session: None, "t"))
    assert caught.value.reason == "NO_SESSION_WAITS"


@both
def test_a_task_of_its_own_that_cannot_be_opened_is_cancelled(service, kind):
    service.sessions = 0
    with pytest.raises(errors.FailedPrecondition):
        asyncio.run(kind(service.url).run(lambda session: None))
    assert set(service.states.values()) == {sessions.SESSION_STATE_ENDED}
    # Where nobody could cancel it, it ends soon, and is not opened again.
    [spec] = [request.spec for request in service.submits.values()]
    assert (spec.budgets.queue.seconds, spec.max_attempts) == (300, 1)


@both
def test_a_task_of_its_own_is_cancelled_when_its_opening_is_interrupted(service, kind, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(polar_mesh.Client if kind is Sync else aio.Client, "open_session", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(kind(service.url).run(lambda session: None))
    assert set(service.states.values()) == {sessions.SESSION_STATE_ENDED}


def test_a_session_may_fail_without_an_exception(service):
    with polar_mesh.Client(service.url) as client:
        session = client.open_session("t")
        session.failure, session.reward = "it gave up", -1.0
        assert client.close_session(session).session_id == "s-0"
    [end] = service.closed
    assert (end.outcome, end.message, end.reward) == (sessions.OUTCOME_HARNESS_ERROR, "it gave up", -1.0)


@both
@pytest.mark.parametrize("lease_s", [0.1, 0, -5, 3601, float("nan"), float("inf"), "long"])
def test_a_lease_that_is_none_is_refused_before_the_task_is_submitted(service, kind, lease_s):
    with pytest.raises((ValueError, TypeError), match="^lease_s: "):
        asyncio.run(kind(service.url).run(lambda session: None, "t", model="m", num_samples=8, lease_s=lease_s))
    assert (service.submits, service.opened) == ({}, {})


@pytest.fixture
def short_leases(monkeypatch):
    monkeypatch.setattr(limits, "LEASE_MIN_S", 0.1)


def renewed_blocking(url, until):
    with polar_mesh.Client(url) as client, client.capture("t", lease_s=0.3):
        wait_until(until)


def renewed_aio(url, until):
    async def run():
        async with aio.Client(url) as client, client.capture("t", lease_s=0.3):
            await asyncio.to_thread(wait_until, until)

    asyncio.run(run())


def wait_until(what):
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("renewed", [renewed_blocking, renewed_aio])
def test_a_lease_is_renewed_until_the_session_is_closed_or_lost(service, short_leases, renewed):
    def thrice():
        if len(service.renewed) == 1 and not service.failures:
            service.failures.append(grpc.StatusCode.INTERNAL)
        return len(service.renewed) >= 4

    renewed(service.url, thrice)
    count = len(service.renewed)
    assert set(service.renewed) == {("s-0", 1)}
    [end] = service.closed
    assert end.outcome == sessions.OUTCOME_COMPLETED
    # The next one is lost: that is heard once.
    with pytest.raises(errors.FailedPrecondition):
        renewed(service.url, lambda: service.renewed[-1] == ("s-1", 1) and not time.sleep(0.3))
    assert service.renewed[count:].count(("s-1", 1)) == 1
    assert len(service.renewed) <= count + 2


def test_a_lease_is_asked_for(service):
    with polar_mesh.Client(service.url) as client:
        client.renew_session(client.open_session("t", lease_s=60.5))
        with pytest.raises(TypeError, match="lease_s"):
            client.open_session("t", lease_s="long")
    assert service.renewed == [("s-0", 1)]
    [lease] = service.leases
    assert (lease.seconds, lease.nanos) == (60, 500_000_000)
