"""The stream over HTTP, read by the thread that asks: what comes in pieces, late, or not at all."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from support import batch

from polar_mesh import Client, errors
from polar_mesh.export.source import ConsumerSource
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesResponse

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(batch_id: int, tokens: int = 8) -> bytes:
    """One message with this batch, as the mesh writes it: a chunk."""
    message = StreamTrajectoriesResponse(batch=batch(batch_id, tokens=tokens)).SerializeToString()
    body = bytes([0]) + len(message).to_bytes(4, "big") + message
    return b"%x\r\n%b\r\n" % (len(body), body)


class Pieces:
    """A server that sends what the test puts in, to one connection at a time."""

    def __init__(self, stack) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        stack.callback(self.listener.close)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.client = Client(trajectory_url=self.url)
        stack.callback(self.client.close)
        self.stream = self.client.stream("trainer")
        stack.callback(self.stream.close)

    def asked(self):
        """The connection of a stream that has looked for its first batch."""
        no_batch(self.stream, 0.01)
        return self.connection()

    @contextlib.contextmanager
    def connection(self):
        self.listener.settimeout(20)
        with self.listener.accept()[0] as near:
            asked = b""
            while b"trainer" not in asked:
                asked += near.recv(65536)
            near.sendall(HEAD)
            yield near


@pytest.fixture
def pieces(stack):
    return Pieces(stack)


def no_batch(stream, timeout_s: float = 0.05) -> None:
    with pytest.raises(errors.DeadlineExceeded):
        stream.next(timeout_s=timeout_s)


def test_a_message_is_read_on_after_each_wait_that_was_too_long(pieces):
    whole = chunk(1) + chunk(2)
    # The message ends before its chunk's line does.
    last = len(chunk(1)) - len(b"\r\n") - 1
    with pieces.asked() as near:
        for at in range(last):
            near.sendall(whole[at : at + 1])
            if at % 16 == 0:
                no_batch(pieces.stream, 0.001)
        near.sendall(whole[last:])
        assert [pieces.stream.next(timeout_s=10).batch_id for _ in range(2)] == [1, 2]


def test_a_long_message_that_comes_slowly_is_no_silence(pieces):
    pieces.stream._silence_s = 0.6
    whole = chunk(1, tokens=100_000)
    with pieces.asked() as near:

        def send() -> None:
            for at in range(0, len(whole), len(whole) // 10 + 1):
                near.sendall(whole[at : at + len(whole) // 10 + 1])
                time.sleep(0.15)

        sender = threading.Thread(target=send)
        sender.start()
        got = pieces.stream.next(timeout_s=30)
        sender.join()
    want = np.arange(100_000, dtype=np.int32) + 1000
    np.testing.assert_array_equal(got.trajectories[0].traces[0].response_ids, want)


def test_what_came_while_nobody_asked_is_there_however_long_that_was(pieces):
    pieces.stream._silence_s = 0.2
    with pieces.asked() as near:
        near.sendall(chunk(1, tokens=20_000))
        time.sleep(0.5)
        assert pieces.stream.next(timeout_s=10).batch_id == 1


@pytest.mark.parametrize("damaged", [b"zz\r\n", b"-5\r\n", b"5 5\r\n", b"\r\n", b"x" * 5000, b"1\r\nab\r\n"])
def test_a_body_that_is_no_body_is_left_for_a_new_stream(pieces, damaged):
    def serve() -> None:
        with pieces.connection() as near:
            near.sendall(damaged)
            with pieces.connection() as other:
                other.sendall(chunk(7))
                other.recv(1)

    server = threading.Thread(target=serve)
    server.start()
    assert pieces.stream.next(timeout_s=20).batch_id == 7
    pieces.stream.close()
    server.join()


def test_a_close_wakes_who_waits_in_the_middle_of_a_message(pieces):
    with pieces.asked() as near:
        near.sendall(chunk(1)[:40])
        threading.Timer(0.3, pieces.stream.close).start()
        with pytest.raises(StopIteration):
            pieces.stream.next(timeout_s=20)
        assert near.recv(1) == b""


def test_an_export_does_not_end_while_a_batch_arrives(pieces):
    whole = chunk(1)
    with pieces.asked() as near:
        near.sendall(whole[:40])
        while not pieces.stream.arriving:
            no_batch(pieces.stream)
        threading.Timer(0.3, near.sendall, [whole[40:]]).start()
        # Its token may not ask whether there is more.
        refused = Mock(side_effect=errors.PermissionDenied("it has no scope read", code="PERMISSION_DENIED"))
        client = SimpleNamespace(stream=lambda *_, **__: pieces.stream, list_consumers=refused)
        source = ConsumerSource(client, "trainer", idle_s=0.05)
        assert [group.batch_id for group in source.groups()] == [1]


def test_a_wait_has_its_limit_while_nobody_answers_the_call(stack):
    # It takes connections, and never a request.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(trajectory_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        stack.callback(client.close)
        stream = client.stream("trainer")
        stack.callback(stream.close)
        began = time.monotonic()
        no_batch(stream, 0.1)
        assert time.monotonic() - began < 5


def test_a_dropped_stream_hangs_up(pieces):
    with pieces.asked() as near:
        near.sendall(chunk(1))
        assert pieces.stream.next(timeout_s=10).batch_id == 1
        pieces.stream.__del__()
        near.settimeout(10)
        assert near.recv(1) == b""
