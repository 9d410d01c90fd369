"""Certificates that are renewed under a client that goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import threading
from concurrent import futures

import grpc
import pytest
from support import Trajectories, batch, free_port
from test_certificates import DOCUMENTED
from test_http_stream import END, ENVELOPE, HEAD

from polar_mesh import Client, aio
from polar_mesh.certificates import Security, security
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesRequest
from polar_mesh.http_stream import http_stream_method

NAMES = {"ca": "ca.pem", "cert": "trainer.pem", "key": "trainer.key"}


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Two that do not know each other, with what each has signed."""
    made = [tmp_path_factory.mktemp(name) for name in ("old", "new")]
    for folder in made:
        subprocess.run(["sh", "-euc", DOCUMENTED], cwd=folder, check=True, capture_output=True)
    return made


@pytest.fixture
def files(tmp_path, authorities):
    """A client's, of the old one."""
    renew(tmp_path, authorities[0])
    return tmp_path


def renew(folder, authority, *, without: str = "") -> None:
    """Put the authority's files in the place of those that are there, but for one."""
    for name in NAMES.values():
        if name != without:
            (folder / "fresh").write_bytes((authority / name).read_bytes())
            os.replace(folder / "fresh", folder / name)


def arguments(folder):
    return {name: folder / file for name, file in NAMES.items()}


class Mesh:
    """By gRPC, for those with a certificate of its authority."""

    def __init__(self) -> None:
        self.trajectories = Trajectories([batch(1), batch(2)])
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"

    def start(self, authority) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
        self.trajectories.register(self._server)
        pair = ((authority / "mesh.key").read_bytes(), (authority / "mesh.pem").read_bytes())
        credentials = grpc.ssl_server_credentials([pair], (authority / "ca.pem").read_bytes(), require_client_auth=True)
        assert self._server.add_secure_port(f"127.0.0.1:{self.port}", credentials) == self.port
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def mesh(authorities, stack):
    made = Mesh()
    made.start(authorities[0])
    stack.callback(lambda: made.stop())
    return made


def test_calls_and_an_open_stream_go_on(mesh, files, authorities, stack):
    client = stack.enter_context(Client(mesh.url, mesh.url, transport="grpc", **arguments(files)))
    stream = client.stream("trainer", max_unacked=1)
    first = stream.next(timeout_s=30)
    mesh.stop()
    renew(files, authorities[1])
    mesh.start(authorities[1])
    first.ack()
    assert [stream.next(timeout_s=30).batch_id, client.list_consumers()[0].name] == [2, "trainer"]


def test_those_of_asyncio_too(mesh, files, authorities):
    async def main() -> list[int]:
        async with aio.Client(mesh.url, mesh.url, transport="grpc", **arguments(files)) as client:
            stream = client.stream("trainer", max_unacked=1)
            first = await stream.next(timeout_s=30)
            mesh.stop()
            renew(files, authorities[1])
            mesh.start(authorities[1])
            await stream.ack([first])
            return [first.batch_id, (await stream.next(timeout_s=30)).batch_id]

    assert asyncio.run(main()) == [1, 2]


def test_what_is_under_way_is_not_broken_off(mesh, files, authorities, stack):
    """The server takes the old certificates as before, and is not asked anew by who is connected."""
    client = stack.enter_context(Client(mesh.url, mesh.url, transport="grpc", **arguments(files)))
    stream = client.stream("trainer", max_unacked=2)
    assert stream.next(timeout_s=30).batch_id == 1
    renew(files, authorities[0])
    assert client.list_consumers()[0].name == "trainer"
    assert stream.next(timeout_s=30).batch_id == 2
    assert mesh.trajectories.streams == 1


def test_the_stream_over_http_opens_with_the_new_ones(files, authorities, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def answer(authority) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(authority / "mesh.pem", authority / "mesh.key")
        with context.wrap_socket(listener.accept()[0], server_side=True) as near:
            near.recv(65536)
            near.sendall(HEAD + b"\r\n" + ENVELOPE + END)
            near.recv(1)

    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    secure = security([url], Security(None, None), **arguments(files))
    opened = http_stream_method(url, "http", secure, None)
    for authority in authorities:
        renew(files, authority)
        serving = threading.Thread(target=answer, args=(authority,), daemon=True)
        serving.start()
        call = opened(StreamTrajectoriesRequest(consumer="trainer"))
        assert [one.seeks for one in call] == [7]
        call.cancel()
        serving.join()


def test_those_of_before_hold_while_the_new_ones_are_not_whole(files, authorities, caplog):
    secure = security(["https://a"], Security(None, None), **arguments(files))
    before = secure()
    assert secure() is before
    renew(files, authorities[1], without="trainer.key")
    assert [secure() is before, secure() is before] == [True, True]
    assert [one.message.partition(":")[0] for one in caplog.records] == [
        "certificates have changed and cannot be used, those of before hold on"
    ]
    (files / "ca.pem").unlink()
    assert secure() is before
    renew(files, authorities[1])
    assert secure() is not before
    assert len(caplog.records) == 2
