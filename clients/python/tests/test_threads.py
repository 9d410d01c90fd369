"""Threads of a trainer: one at a time asks a stream for its batches."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import Server, Trajectories, batch

from polar_mesh import Client


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_second_thread_that_asks_is_refused_and_takes_nothing(stack, transport):
    dropped = batch(1)
    dropped.dropped_reason = "zero_variance"
    service = Trajectories([dropped, batch(2)])
    server = Server(service.register)
    stack.callback(server.stop)
    client = Client(trajectory_url=server.url, transport=transport)
    stack.callback(client.close)
    asks, go_on = threading.Event(), threading.Event()

    def hold(_):
        asks.set()
        go_on.wait(timeout=20)

    stream = client.stream("trainer", on_dropped=hold)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(stream.next, 5)
        assert asks.wait(timeout=20)
        try:
            with pytest.raises(RuntimeError, match="another thread waits for a batch"):
                stream.next(timeout_s=1)
        finally:
            go_on.set()
        assert asked.result().batch_id == 2
    service.add(batch(3))
    assert stream.next(timeout_s=20).batch_id == 3, "one behind the other may"
