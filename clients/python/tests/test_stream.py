"""Streaming: each batch once, whatever happens to the connection."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from support import Link, Server, Trajectories, abort, batch

from polar_mesh import Client, errors, waits
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb


def serve(stack, batches, **options):
    service = Trajectories(batches, **options)
    server = Server(service.register)
    stack.callback(server.stop)
    return service, server


@pytest.fixture(params=["http", "grpc"], autouse=True)
def transport(request, monkeypatch):
    """Every test of this file is made by both."""
    monkeypatch.setitem(OPTIONS, "transport", request.param)


#: Of every client here.
OPTIONS: dict[str, str] = {}


def connect(stack, url, **options) -> Client:
    client = Client(trajectory_url=url, **OPTIONS, **options)
    stack.callback(client.close)
    return client


def take(stream, count):
    return [stream.next(timeout_s=20) for _ in range(count)]


def ids(batches):
    return [one.batch_id for one in batches]


def test_batches_come_in_order_and_acks_are_recorded(stack):
    service, server = serve(stack, [batch(3), batch(5), batch(9)])
    stream = connect(stack, server.url).stream("trainer")
    got = take(stream, 3)
    assert ids(got) == [3, 5, 9]
    assert not any(one.redelivered for one in got)
    got[0].ack()
    got[0].ack()
    stream.ack(got[1:])
    assert service.acked == {3, 5, 9}


def test_an_ack_names_the_seeks_that_its_batches_came_after(stack):
    service, server = serve(stack, [batch(1), batch(2)])
    client = connect(stack, server.url)
    first, second = take(client.stream("trainer"), 2)
    first.ack()
    service.seeks = 2
    again = client.stream("trainer", max_unacked=1)
    assert again.ack([second]) == [second]
    assert take(again, 1)[0].batch_id == 2
    again.ack([])
    client.ack("trainer", [2])
    assert service.acked_seeks == [0, 0, 2, None]
    with pytest.raises(errors.DeadlineExceeded) as caught:
        again.next(timeout_s=0.1)
    assert caught.value.message == "no batch came in the time given", "what was acknowledged by its id is held no more"


def test_an_ack_of_what_came_before_a_seek_is_none_of_what_the_seek_brings(stack):
    """An operator seeks back while the trainer holds a batch: its ack must not swallow the one that comes again."""
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    (held,) = take(stream, 1)
    service.seeks = 1
    server.stop()
    server.start()
    (again,) = take(stream, 1)
    assert (held.batch_id, again.batch_id) == (1, 1)
    assert not held.ack()
    assert service.acked == set()
    assert again.ack()
    assert stream.ack([held, again]) == [held]
    assert service.acked_seeks == [0, 1, 0, 1]


def test_an_ack_before_the_stream_has_heard_of_a_seek_says_that_it_does_not_count(stack):
    service, server = serve(stack, [batch(1)], progress_s=60)
    stream = connect(stack, server.url).stream("trainer")
    (held,) = take(stream, 1)
    service.seeks = 1
    assert not held.ack()
    server.stop()
    server.start()
    assert take(stream, 1)[0].ack()
    assert service.acked == {1}


def test_a_batch_of_another_consumer_is_refused(stack):
    service, server = serve(stack, [batch(1)])
    client = connect(stack, server.url)
    (got,) = take(client.stream("trainer"), 1)
    other = client.stream("other")
    for refused in (other.ack, other.nack):
        with pytest.raises(errors.InvalidArgument, match="came to consumer trainer"):
            refused([got])
    assert service.acked_seeks == []
    got.ack()
    assert service.acked == {1}


def test_a_batch_goes_to_another_process_and_is_acknowledged_by_the_stream(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    (got,) = take(stream, 1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (back,) = pool.map(copy.copy, [got])
    for ours, theirs in zip(got.trajectories, back.trajectories, strict=True):
        assert np.array_equal(ours.traces[0].logprobs, theirs.traces[0].logprobs)
        assert ours.traces[0].spans == theirs.traces[0].spans
    with pytest.raises(TypeError, match="by a stream of its consumer"):
        back.ack()
    assert stream.ack([back]) == []
    assert service.acked == {1}
    assert copy.deepcopy(got).ack()


def test_streams_and_clients_stay_where_they_are(stack):
    client = connect(stack, "http://127.0.0.1:9")
    for one in (client, client.stream("trainer")):
        with pytest.raises(TypeError, match="stays in the process that"):
            pickle.dumps(one)


FORKS = """
import os, sys
import polar_mesh

stream = polar_mesh.Client(trajectory_url=sys.argv[1], transport=sys.argv[2]).stream("trainer")
stream.next(timeout_s=10)
child = os.fork()
if child == 0:
    try:
        stream.next(timeout_s=1)
    except RuntimeError as error:
        stream.close()
        os._exit(7 if "shared=True" in str(error) else 1)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stream.next(timeout_s=10).ack()
os._exit(0)
"""


def test_a_stream_is_of_the_process_that_opened_it(stack):
    """A worker of a DataLoader, say: it must not end the connection that it has from its parent."""
    service, server = serve(stack, [batch(1), batch(2)])
    command = [sys.executable, "-W", "ignore", "-c", FORKS, server.url, OPTIONS["transport"]]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert service.acked == {2}
    assert service.streams == 1, "the connection of the parent goes on"


def test_new_batches_come_as_they_are_made(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    assert next(stream).batch_id == 1
    threading.Timer(0.3, service.add, [batch(2)]).start()
    assert next(stream).batch_id == 2


def test_no_more_than_max_unacked_are_given_out(stack):
    service, server = serve(stack, [batch(n) for n in range(1, 6)])
    stream = connect(stack, server.url).stream("trainer", max_unacked=2)
    first = take(stream, 2)
    with pytest.raises(errors.DeadlineExceeded, match="2 are not acknowledged, and max_unacked is 2"):
        stream.next(timeout_s=0.5)
    first[0].ack()
    assert stream.next(timeout_s=5).batch_id == 3
    assert service.streams == 1, "a wait that timed out must not cost the stream"


def test_a_restarted_server_neither_loses_nor_repeats_what_the_trainer_holds(stack):
    service, server = serve(stack, [batch(1), batch(2), batch(3)])
    stream = connect(stack, server.url).stream("trainer", max_unacked=2)
    held = take(stream, 2)
    server.stop()
    threading.Timer(1.0, server.start).start()
    held[1].ack()
    assert service.acked == {2}, "an ack waits for the server to come back"
    assert stream.next(timeout_s=20).batch_id == 3
    held[0].ack()
    with pytest.raises(errors.DeadlineExceeded):
        stream.next(timeout_s=0.5)
    assert service.acked == {1, 2}
    assert service.streams == 2


def test_a_cut_network_neither_loses_nor_repeats(stack):
    service, server = serve(stack, [batch(n, tokens=200_000) for n in range(1, 31)], progress_s=0.05)
    link = Link(server.port)
    stack.callback(link.close)
    stream = connect(stack, link.url).stream("trainer", max_unacked=4)
    got = []
    for turn in range(30):
        got.append(stream.next(timeout_s=20))
        if turn % 4 == 1:
            link.cut()
        got[-1].ack()
    assert ids(got) == list(range(1, 31))
    assert service.acked == set(range(1, 31))
    assert service.streams > 3, "the link was cut for nothing"


def test_what_an_earlier_stream_did_not_acknowledge_comes_again_and_is_marked(stack):
    _, server = serve(stack, [batch(1), batch(2)])
    with connect(stack, server.url).stream("trainer") as first:
        take(first, 2)[0].ack()
    again = take(connect(stack, server.url).stream("trainer"), 1)
    assert ids(again) == [2]
    assert again[0].redelivered


class GivenBack(Trajectories):
    """Its first answer to a call that gives back is lost."""

    def __init__(self, batches):
        super().__init__(batches)
        self.nacks: list[tuple[list[int], list[int]]] = []

    def NackTrajectories(self, request, context):
        self.nacks.append((list(request.batch_ids), list(request.delivery_counts)))
        if len(self.nacks) == 1:
            retry = RetryInfo()
            retry.retry_delay.FromMilliseconds(10)
            abort(context, grpc.StatusCode.UNAVAILABLE, "lost", "NATS_UNAVAILABLE", retry)
        return pb.NackTrajectoriesResponse()


def test_a_call_that_gives_back_says_which_delivery_also_when_it_is_repeated(stack):
    one = batch(1)
    one.delivery_count = 3
    service = GivenBack([one])
    server = Server(service.register)
    stack.callback(server.stop)
    client = connect(stack, server.url)
    client.stream("trainer").next(timeout_s=10).nack()
    client.nack("trainer", [1])
    assert service.nacks == [([1], [3]), ([1], [3]), ([1], [0])]


def test_a_silent_server_is_left_for_a_new_stream(stack):
    service, server = serve(stack, [batch(1)])
    service.muted.set()
    client = connect(stack, server.url)
    stream = client.stream("trainer")
    stream._silence_s = 0.5

    def speak_to_the_next():
        while service.streams < 2:
            time.sleep(0.01)
        service.muted.clear()

    threading.Thread(target=speak_to_the_next, daemon=True).start()
    assert stream.next(timeout_s=20).batch_id == 1


def test_a_replaced_stream_ends_with_its_reason(stack):
    service, server = serve(stack, [])
    old = connect(stack, server.url).stream("trainer")
    with pytest.raises(errors.DeadlineExceeded):
        old.next(timeout_s=0.3)
    new = connect(stack, server.url).stream("trainer")
    with pytest.raises(errors.DeadlineExceeded):
        new.next(timeout_s=0.3)
    with pytest.raises(errors.Aborted) as caught:
        old.next(timeout_s=5)
    assert caught.value.reason == "STREAM_REPLACED"
    assert not caught.value.retryable
    assert service.streams == 2, "a replaced stream must not fight for its place"


def test_an_unreachable_server_is_unavailable_after_the_reconnect_time(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url, reconnect_s=1.0).stream("trainer")
    assert next(stream).batch_id == 1
    server.stop()
    began = time.monotonic()
    with pytest.raises(errors.Unavailable) as caught:
        next(stream)
    assert 0.9 < time.monotonic() - began < 10
    assert caught.value.reason == "UNAVAILABLE"
    server.start()
    service.add(batch(2))
    assert stream.next(timeout_s=20).batch_id == 2, "the stream can be used on"


def test_acks_are_repeated_when_the_server_asks_for_it(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    retry = RetryInfo()
    retry.retry_delay.FromMilliseconds(200)
    service.ack_failures = [(grpc.StatusCode.UNAVAILABLE, [retry])] * 2
    began = time.monotonic()
    next(stream).ack()
    assert time.monotonic() - began >= 0.4
    assert service.acked == {1}


def test_a_failed_ack_is_an_error_and_can_be_repeated(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    got = next(stream)
    service.ack_failures = [(grpc.StatusCode.NOT_FOUND, [])]
    with pytest.raises(errors.NotFound) as caught:
        got.ack()
    assert (caught.value.reason, caught.value.boundary) == ("NATS_UNAVAILABLE", "mesh")
    assert service.acked == set()
    got.ack()
    assert service.acked == {1}


def test_closing_from_another_thread_ends_the_iteration(stack):
    _, server = serve(stack, [batch(1)])
    client = connect(stack, server.url)
    stream = client.stream("trainer")
    threading.Timer(0.5, client.close).start()
    began = time.monotonic()
    assert ids(stream) == [1]
    assert time.monotonic() - began < 10
    with pytest.raises(errors.Cancelled):
        client.stream("trainer")


def test_a_trainer_that_forgets_to_acknowledge_is_told_in_the_log(stack, monkeypatch, caplog):
    monkeypatch.setattr(waits, "HELD_WARN_S", 0.3)
    _, server = serve(stack, [batch(1), batch(2)])
    stream = connect(stack, server.url).stream("trainer", max_unacked=1)
    (got,) = take(stream, 1)
    acking = threading.Timer(1.5, got.ack)
    acking.start()
    assert stream.next(timeout_s=20).batch_id == 2
    # It gets its answer behind the batch that it makes room for.
    acking.join()
    (record,) = caplog.records
    assert "1 are not acknowledged, and max_unacked is 1" in record.getMessage()


def test_a_trainer_that_takes_long_between_batches_is_not_told(stack, monkeypatch, caplog):
    monkeypatch.setattr(waits, "HELD_WARN_S", 0.3)
    _, server = serve(stack, [batch(1), batch(2)])
    stream = connect(stack, server.url).stream("trainer", max_unacked=2, max_unacked_tokens=1_000)
    for _ in range(2):
        take(stream, 1)
        time.sleep(0.5)
    assert caplog.records == []
    with pytest.raises(errors.DeadlineExceeded):
        stream.next(timeout_s=2)
    (record,) = caplog.records
    assert "2 are not acknowledged, and max_unacked is 2" in record.getMessage()


def test_a_closed_stream_gives_nothing_out_though_it_has_come(stack):
    service, server = serve(stack, [batch(1)])
    stream = connect(stack, server.url).stream("trainer")
    (got,) = take(stream, 1)
    stream._intake.put_back(service.batches[0])
    stream.close()
    assert ids(stream) == []
    got.ack()
    assert service.acked == {1}


def test_a_dropped_stream_is_closed(stack):
    service, server = serve(stack, [batch(1), batch(2)])
    client = connect(stack, server.url)
    for got in client.stream("trainer"):
        assert got.batch_id == 1
        break
    deadline = time.monotonic() + 5
    while any(thread.name == "polar-reader" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "the reader of a dropped stream is left"
        time.sleep(0.05)
    got.ack()
    assert service.acked == {1}
