"""Acknowledgements over HTTP/1.1: one connection for all of them, and what becomes of those that break."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import grpc
import pytest
from support import Link, Server, Trajectories, batch, free_port

from polar_mesh import Client, errors
from polar_mesh.certificates import Security
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import AckTrajectoriesRequest, AckTrajectoriesResponse
from polar_mesh.http_calls import HttpCalls


class Counted(Link):
    """A link that counts the connections over it."""

    def __init__(self, target: int) -> None:
        self.connections = 0
        self.grpc_port = 0
        super().__init__(target)

    def _take(self, near: socket.socket) -> None:
        self.connections += 1
        super()._take(near)


@pytest.fixture
def mesh(stack):
    service = Trajectories([batch(number) for number in range(1, 9)])
    server = Server(service.register)
    stack.callback(server.stop)
    link = Counted(server.port)
    #: Of a port that speaks nothing else.
    link.grpc_port = server.grpc_port
    stack.callback(link.close)
    return service, link


def answering(stack, answer: bytes, *, times: int = 1) -> str:
    """The address of a server that says this to each request, and keeps its connections."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def serve() -> None:
        for _ in range(times):
            near, _ = listener.accept()
            stack.callback(near.close)
            near.recv(65536)
            near.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_all_go_over_one_connection_that_is_kept(mesh):
    service, link = mesh
    with Client(trajectory_url=link.url) as client:
        for number in range(1, 6):
            client.ack("trainer", [number])
    assert service.acked == set(range(1, 6))
    assert link.connections == 1


def test_what_the_server_has_ended_while_nobody_called_is_no_failure(mesh):
    service, link = mesh
    with Client(trajectory_url=link.url) as client:
        client.ack("trainer", [1])
        link.cut()
        client.ack("trainer", [2])
    assert service.acked == {1, 2}
    assert link.connections == 2


def test_threads_that_call_at_once_each_have_their_answer(mesh):
    service, link = mesh
    with Client(trajectory_url=link.url) as client:
        threads = [threading.Thread(target=client.ack, args=("trainer", [number])) for number in range(1, 9)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert service.acked == set(range(1, 9))


def test_a_refusal_has_its_type_and_the_connection_goes_on(mesh):
    service, link = mesh
    service.ack_failures = [(grpc.StatusCode.INVALID_ARGUMENT, ())]
    with Client(trajectory_url=link.url) as client:
        with pytest.raises(errors.InvalidArgument) as caught:
            client.ack("trainer", [1])
        assert caught.value.reason == "NATS_UNAVAILABLE"
        client.ack("trainer", [1])
    assert link.connections == 1


def test_a_wait_is_over_in_its_time(stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = stack.enter_context(Client(trajectory_url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        client.ack("trainer", [1], timeout_s=0.5)
    assert time.monotonic() - began < 10


def test_close_ends_a_call_that_waits(stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = Client(trajectory_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    near: list[socket.socket] = []

    def close_when_asked() -> None:
        near.append(listener.accept()[0])
        near[0].recv(1)
        client.close()

    closer = threading.Thread(target=close_when_asked)
    closer.start()
    with pytest.raises(errors.Cancelled):
        client.ack("trainer", [1], timeout_s=60)
    closer.join()
    near[0].close()


def test_close_ends_a_call_that_is_just_connecting(stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def security() -> Security:
        calls.close()
        return Security(None, None)

    calls = HttpCalls(f"http://127.0.0.1:{listener.getsockname()[1]}", security, None)
    began = time.monotonic()
    with pytest.raises(errors.Cancelled):
        calls.method("/any", AckTrajectoriesResponse)(AckTrajectoriesRequest(), timeout=20)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nno", errors.Internal),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi", errors.Internal),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 1\r\n\r\n\xff", errors.Internal),
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", errors.PermissionDenied),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]", errors.Internal),
    ],
)
def test_another_servers_answer_is_named_and_not_tried_again(stack, answer, kind):
    client = stack.enter_context(Client(trajectory_url=answering(stack, answer)))
    with pytest.raises(kind):
        client.ack("trainer", [1], timeout_s=20)


FORKED = """
import os, sys
from polar_mesh import Client
client = Client(trajectory_url=sys.argv[1])
client.ack("trainer", [1])
child = os.fork()
client.ack("trainer", [3 if child else 2])
if child == 0: os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_process_that_was_forked_leaves_the_connection_to_the_other(mesh):
    service, link = mesh
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED, link.url], check=True, timeout=60, env=env)
    assert service.acked == {1, 2, 3}
    assert link.connections == 2


def test_who_cannot_be_reached_is_named():
    url = f"http://127.0.0.1:{free_port()}"
    with Client(trajectory_url=url) as client, pytest.raises(errors.Unavailable, match=url.removeprefix("http://")):
        client.ack("trainer", [1], timeout_s=0.5)


def test_by_grpc_where_that_is_asked_for(mesh):
    service, link = mesh
    with Client(trajectory_url=f"http://127.0.0.1:{link.grpc_port}", transport="grpc") as client:
        client.ack("trainer", [1])
    assert service.acked == {1}
