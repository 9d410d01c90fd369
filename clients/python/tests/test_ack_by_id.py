"""Acknowledging by id, which the open streams of the client are told of."""

from __future__ import annotations

import sys
import threading

import pytest
from support import Server, Trajectories, batch

from polar_mesh import Client, errors


def serve(stack):
    service = Trajectories([batch(1)])
    server = Server(service.register)
    stack.callback(server.stop)
    return service, stack.enter_context(Client(trajectory_url=server.url))


def test_an_ack_by_id_that_was_made_before_a_seek_is_none_of_what_the_seek_brings(stack):
    service, client = serve(stack)
    service.seeks = 1
    stream = client.stream("trainer", max_unacked=1)
    stream.next(timeout_s=20)
    service.seeks = 0  # As it was when the acknowledgement came there.
    client.ack("trainer", [1])
    with pytest.raises(errors.DeadlineExceeded, match="1 are not acknowledged"):
        stream.next(timeout_s=0.1)


def test_streams_are_opened_while_another_thread_acknowledges_by_id(stack):
    _, client = serve(stack)
    kept = []
    opener = threading.Thread(target=lambda: kept.extend(client.stream("other") for _ in range(2000)))
    stack.callback(sys.setswitchinterval, sys.getswitchinterval())
    sys.setswitchinterval(1e-5)
    opener.start()
    while opener.is_alive():
        client.ack("trainer", [1])


def test_what_is_no_list_of_batches_is_told_by_what_it_should_be(stack):
    service, client = serve(stack)
    stream = client.stream("trainer")
    one = stream.next(timeout_s=20)
    for call in (stream.ack, stream.nack):
        with pytest.raises(TypeError, match=r"in place of several: give \[batch\]"):
            call(one)
        with pytest.raises(TypeError, match=r"one of these is a int: by id, there are client.ack\(consumer, ids\)"):
            call([one.batch_id])
    assert service.acked == set()
