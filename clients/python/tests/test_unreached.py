"""A mesh that is not reached: a wait for a batch says so, ends in its time, and is not forever; nor is it an empty export."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from support import Server, Trajectories, abort, batch, free_port

from polar_mesh import Client, Filter, aio, aio_stream, errors, ledger, retry, waits
from polar_mesh.export import cli, export
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb


@pytest.fixture(params=["blocking", "asyncio"])
def waited(request, stack):
    """Waits for batches of a stream, for so many seconds each; gives what each wait raised and how long it took."""

    def wait(url, *timeouts_s, filter=None, **options):
        options = {"trajectory_url": url, "reconnect_s": 60.0, **options}

        async def of(stream, how):
            came = []
            for timeout_s in timeouts_s:
                began = time.monotonic()
                try:
                    came.append(await how(stream, timeout_s))
                except errors.PolarError as error:
                    came.append(error)
                came.append(time.monotonic() - began)
            return came

        async def blocking():
            with Client(**options) as client, client.stream("trainer", filter=filter) as stream:
                return await of(stream, lambda stream, timeout_s: asyncio.to_thread(stream.next, timeout_s))

        async def other():
            async with aio.Client(**options) as client:
                async with client.stream("trainer", filter=filter) as stream:
                    return await of(stream, lambda stream, timeout_s: stream.next(timeout_s))

        return asyncio.run(blocking() if request.param == "blocking" else other())

    return wait


@pytest.fixture
def nobody():
    return f"http://127.0.0.1:{free_port()}"


def test_a_wait_says_that_nobody_was_reached_and_ends_in_its_time(waited, nobody, monkeypatch):
    for name in ("RETRY_PAUSE_S", "RETRY_PAUSE_MAX_S"):
        monkeypatch.setattr(retry, name, 60)
    error, took_s = waited(nobody, 0.2)
    assert isinstance(error, errors.DeadlineExceeded)
    assert "the stream broke, and nothing has come since" in error.message
    assert isinstance(error.__cause__, errors.Unavailable)
    assert 0.1 < took_s < 10


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_wait_for_a_task_ends_in_its_time(nobody, monkeypatch, kind):
    for name in ("RETRY_PAUSE_S", "RETRY_PAUSE_MAX_S"):
        monkeypatch.setattr(retry, name, 60)

    async def wait():
        if kind == "blocking":
            with Client(nobody) as client:
                return await asyncio.to_thread(client.wait, "t", timeout_s=0.2)
        async with aio.Client(nobody) as client:
            return await client.wait("t", timeout_s=0.2)

    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded, match="task t has not ended"):
        asyncio.run(wait())
    assert time.monotonic() - began < 10


def test_who_asks_again_and_again_is_told_when_the_time_for_reconnecting_is_over(waited, nobody):
    raised = [type(one) for one in waited(nobody, *[0.02] * 25, reconnect_s=0.2)[::2]]
    told = raised.index(errors.Unavailable)
    assert 0 < told < 20
    assert raised[told + 1] is errors.DeadlineExceeded, "it has all of the time again"


def test_the_time_for_reconnecting_begins_anew_when_something_has_come(waited, stack):
    server = Server(Trajectories([batch(1)], progress_s=0.05).register)
    stack.callback(server.stop)
    got, _, error, _ = waited(server.url, 10, 0.3, reconnect_s=0.2)
    assert got.batch_id == 1
    assert isinstance(error, errors.DeadlineExceeded)
    assert error.__cause__ is None
    assert error.message == "no batch came in the time given"


class Busy(Trajectories):
    """Its first stream is to come later."""

    def StreamTrajectories(self, request, context):
        if self.streams == 0:
            self.streams = 1
            later = RetryInfo()
            later.retry_delay.FromMilliseconds(400)
            abort(context, grpc.StatusCode.UNAVAILABLE, "busy", "NATS_UNAVAILABLE", later)
        yield from super().StreamTrajectories(request, context)


def test_who_asks_again_and_again_comes_no_sooner_than_the_server_asked_for(waited, stack):
    service = Busy([batch(1)])
    server = Server(service.register)
    stack.callback(server.stop)
    came = waited(server.url, *[0.02] * 10, 10)
    assert [type(one) for one in came[:-2:2]] == [errors.DeadlineExceeded] * 10
    assert (came[-2].batch_id, service.streams) == (1, 2)
    assert sum(came[1::2]) > 0.38


FRESH, DROPPED, STALE = "fresh", "dropped", "stale"


class Unanswered(Trajectories):
    """Its first batch is not handed over, or not dropped, without a call; the first ones of these are not answered."""

    def __init__(self, kind, unanswered):
        batches = [batch(1), batch(2)]
        # All but the stale one were sent, and sampled, under the policy version that is current.
        for one, version in zip(batches, (3 if kind == STALE else 7, 7), strict=True):
            one.policy_version = version
            for trajectory in one.trajectories:
                trajectory.policy_version_min = version
        if kind == DROPPED:
            batches[0].dropped_reason = "zero_variance"
        super().__init__(batches)
        self.unanswered = {"AckTrajectories": 0, "NackTrajectories": 0}
        self.unanswered["NackTrajectories" if kind == STALE else "AckTrajectories"] = unanswered

    def _answers(self, name, context):
        self.unanswered[name] -= 1
        while self.unanswered[name] >= 0 and context.is_active():
            time.sleep(0.01)

    def AckTrajectories(self, request, context):
        self._answers("AckTrajectories", context)
        answer = super().AckTrajectories(request, context)
        answer.policy_version = 7
        return answer

    def NackTrajectories(self, request, context):
        self._answers("NackTrajectories", context)
        return pb.NackTrajectoriesResponse()


@pytest.mark.parametrize("kind", [FRESH, DROPPED, STALE])
def test_a_call_that_a_batch_needs_ends_with_the_wait_and_is_made_again_by_the_next(waited, stack, monkeypatch, kind):
    monkeypatch.setattr(waits, "HAND_OVER_S", 0.01)
    server = Server(Unanswered(kind, 1).register)
    stack.callback(server.stop)
    # Long enough for the batch to have come, and the call to be under way.
    error, took_s, got, _ = waited(server.url, 1.5, 20, filter=Filter(staleness_max=2))
    assert isinstance(error, errors.DeadlineExceeded)
    assert isinstance(error.__cause__, errors.Unavailable)
    assert took_s < 10
    assert got.batch_id == (1 if kind == FRESH else 2)


@pytest.mark.parametrize("kind", [FRESH, DROPPED, STALE])
def test_a_call_that_a_batch_needs_is_made_for_as_long_as_the_stream_is_opened_again(waited, stack, monkeypatch, kind):
    for name in ("CALL_S", "HAND_OVER_S"):
        monkeypatch.setattr(waits, name, 0.1)
    options = {"filter": Filter(staleness_max=2), "timeout_s": 0.1}
    server = Server(Unanswered(kind, 3).register)
    stack.callback(server.stop)
    got, _ = waited(server.url, None, **options)
    assert got.batch_id == (1 if kind == FRESH else 2)
    silent = Server(Unanswered(kind, 1000).register)
    stack.callback(silent.stop)
    error, _ = waited(silent.url, None, reconnect_s=0.3, **options)
    assert isinstance(error, errors.Unavailable)


class Together(Unanswered):
    """Its batches come in one message."""

    def StreamTrajectories(self, request, context):
        yield pb.StreamTrajectoriesResponse(batch=self.batches[0], more=self.batches[1:])
        while context.is_active():
            time.sleep(0.01)


def test_who_only_looks_is_handed_over_what_has_come(waited, stack, monkeypatch):
    monkeypatch.setattr(waits, "HAND_OVER_S", 20)
    for module in (ledger, aio_stream):
        monkeypatch.setattr(module, "VERSION_AGE_S", 0)
    server = Server(Together(FRESH, 0).register)
    stack.callback(server.stop)
    first, _, second, _ = waited(server.url, 20, 0, filter=Filter(staleness_max=2))
    assert (first.batch_id, second.batch_id) == (1, 2)


def test_a_trainer_that_waits_for_nobody_is_told_in_the_log(waited, nobody, monkeypatch, caplog):
    monkeypatch.setattr(waits, "HELD_WARN_S", 0.1)
    (error, _) = waited(nobody, None, reconnect_s=0.3)
    assert isinstance(error, errors.Unavailable)
    (record,) = caplog.records
    assert "no batch for 0 s, as the stream broke" in record.getMessage()


def all_dropped():
    """One is given out; of those behind it the filter leaves nothing."""
    batches = [batch(number) for number in range(1, 5)]
    for one, reason in zip(batches[1:], ("zero_variance", "sessions_dropped", "zero_variance"), strict=True):
        one.dropped_reason = reason
    for trajectory in batches[2].trajectories:
        trajectory.dropped_reason = "stale"
    return Trajectories(batches)


def test_a_wait_in_which_all_was_dropped_says_so(waited, stack):
    server = Server(all_dropped().register)
    stack.callback(server.stop)
    got, _, error, _ = waited(server.url, 10, 1)
    assert got.batch_id == 1
    assert error.message == (
        "no batch came in the time given: the filter has dropped all groups since the last batch: "
        "1 sessions_dropped and stale, 2 zero_variance"
    )


def test_a_trainer_for_whom_all_is_dropped_is_told_in_the_log(waited, stack, monkeypatch, caplog):
    monkeypatch.setattr(waits, "HELD_WARN_S", 0.1)
    server = Server(all_dropped().register)
    stack.callback(server.stop)
    waited(server.url, 10, 0.3, 0.1)
    (record,) = caplog.records
    assert "no batch for 0 s, as the filter has dropped all groups" in record.getMessage()


def test_an_export_of_a_consumer_from_nobody_is_no_empty_export(nobody, tmp_path, capsys):
    with Client(trajectory_url=nobody) as client, pytest.raises(errors.Unavailable):
        export(client, tmp_path / "a", consumer="export", idle_s=0.2)
    of = [str(tmp_path / "b"), "--consumer", "export", "--idle", "0.2", "--trajectory-url"]
    assert cli.main([*of, nobody]) == 3
    assert "Connection refused" in capsys.readouterr().err
    assert cli.main([*of, "localhost:8070"]) == 2
    assert capsys.readouterr().err.startswith("polar-export: 'localhost:8070' is not http://host:port")
