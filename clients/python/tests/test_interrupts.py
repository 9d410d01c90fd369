"""What a signal's handler raises while a batch is waited for: it is raised as it is, and costs no batch and none of its bytes."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading

import numpy as np
import pytest
from support import Server, Trajectories, batch
from test_http_reader import Pieces, chunk

import polar_mesh
from polar_mesh import Client

PACKAGE = polar_mesh.__path__[0]


class Stop(Exception):
    """A handler's own."""


@pytest.fixture
def after():
    """Has a signal's handler raise this after some time."""
    before = signal.getsignal(signal.SIGALRM)

    def alarm(seconds: float, error: BaseException) -> None:
        def handle(*_: object) -> None:
            raise error

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutError(), TimeoutError("timed out"), OSError("no"), Stop()])
def test_it_is_raised_as_it_is_and_what_was_half_there_comes_again(stack, after, error):
    pieces = Pieces(stack)
    with pieces.asked() as near:
        near.sendall(chunk(1, tokens=1000)[:3000])
        after(0.05, error)
        with pytest.raises(type(error)) as caught:
            pieces.stream.next(timeout_s=20)
        assert caught.value is error
    with pieces.asked() as near:
        near.sendall(chunk(1, tokens=1000) + chunk(2))
        got = pieces.stream.next(timeout_s=20)
        np.testing.assert_array_equal(got.trajectories[0].traces[0].response_ids, np.arange(1000) + 1000)
        assert pieces.stream.next(timeout_s=20).batch_id == 2


@pytest.fixture
def reader(monkeypatch):
    """Has a handler raise while the first reader's thread is started, which comes to run afterwards, by this."""
    begun = []
    start = threading.Thread.start

    def raises(thread: threading.Thread) -> None:
        if thread.name == "polar-reader" and not begun:
            begun.append(thread)
            raise KeyboardInterrupt
        start(thread)

    def run() -> None:
        begun[0].start()
        begun[0].join(timeout=5)
        assert not begun[0].is_alive(), "it waits for what nobody will ask for"

    monkeypatch.setattr(threading.Thread, "start", raises)
    return run


def test_a_connection_that_is_being_begun_is_none_later(stack, reader):
    """It would replace the stream's next one."""
    pieces = Pieces(stack)
    with pytest.raises(KeyboardInterrupt):
        pieces.stream.next(timeout_s=20)
    reader()
    with pieces.asked() as near:
        near.sendall(chunk(1))
        assert pieces.stream.next(timeout_s=20).batch_id == 1


def test_a_call_that_is_being_begun_is_none_later(stack, reader):
    server = Server(Trajectories([batch(1)]).register)
    stack.callback(server.stop)
    client = Client(trajectory_url=server.url, transport="grpc")
    stack.callback(client.close)
    stream = client.stream("trainer")
    with pytest.raises(KeyboardInterrupt):
        stream.next(timeout_s=20)
    reader()
    assert stream.next(timeout_s=20).batch_id == 1


@contextlib.contextmanager
def interrupted(at: int):
    """Raises KeyboardInterrupt at the package's n-th place in this thread where Python looks for signals: behind a call of C,
    and where one of its functions begins."""
    left = at

    def profile(frame, event, _):
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_wherever_it_is_raised_each_batch_comes_once(stack, transport):
    service = Trajectories([], progress_s=60)
    server = Server(service.register)
    stack.callback(server.stop)
    client = Client(trajectory_url=server.url, transport=transport)
    stack.callback(client.close)
    stream = client.stream("trainer", max_unacked=1)
    raised = batch_id = 0
    while raised == batch_id:
        batch_id += 1
        service.add(batch(batch_id, samples=1))
        got = None
        with interrupted(batch_id):
            try:
                got = stream.next(timeout_s=20)
            except KeyboardInterrupt:
                raised += 1
        got = got or stream.next(timeout_s=20)
        assert got.batch_id == batch_id
        assert got.trajectories[0].traces[0].logprobs[1] == np.float32(-(batch_id * 1000 + 1) / 7)
        got.ack()
    assert raised > 100
