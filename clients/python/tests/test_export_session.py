"""``export_session`` of both clients, against a server that stops in the middle."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent import futures

import pytest
from support import Server

import polar_mesh
import polar_mesh.aio
from polar_mesh import errors, limits
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2_grpc as pb_grpc

LINES = [{"call_id": str(i)} for i in range(3)]


class Stopping(pb_grpc.TrajectoryServiceServicer):
    """Makes the first line for ``making_s``; says no more behind it the first time that it is asked."""

    def __init__(self, making_s: float) -> None:
        self.making_s = making_s
        self.calls = 0
        #: Its first line is on its way, and no more comes.
        self.is_silent = threading.Event()

    def ExportSession(self, request, context):
        self.calls += 1
        silent = self.calls == 1
        left = threading.Event()
        context.add_callback(left.set)
        left.wait(self.making_s)
        for line in LINES:
            yield pb.ExportSessionResponse(line=json.dumps(line))
            if silent:
                self.is_silent.set()
                left.wait()
                return

    def register(self, server) -> None:
        pb_grpc.add_TrajectoryServiceServicer_to_server(self, server)


def blocking(url: str) -> list:
    with polar_mesh.Client(url, url) as client:
        return client.export_session("s", "calls", timeout_s=20)


def by_coroutine(url: str) -> list:
    async def run() -> list:
        async with polar_mesh.aio.Client(url, url) as client:
            return await client.export_session("s", "calls", timeout_s=20)

    return asyncio.run(run())


@pytest.mark.parametrize("export", [blocking, by_coroutine])
def test_is_asked_for_again_where_it_goes_silent(monkeypatch, export):
    monkeypatch.setattr(limits, "STREAM_SILENCE_S", 0.3)
    # Its first line may take longer to make.
    stopping = Stopping(making_s=0.6)
    server = Server(stopping.register)
    try:
        assert export(server.url) == LINES
    finally:
        server.stop()
    assert stopping.calls == 2


def closed_blocking(url: str, is_silent: threading.Event) -> list:
    client = polar_mesh.Client(url, url)
    with futures.ThreadPoolExecutor(1) as pool:
        export = pool.submit(client.export_session, "s", "calls", timeout_s=20)
        assert is_silent.wait(10)
        client.close()
        return export.result()


def closed_by_coroutine(url: str, is_silent: threading.Event) -> list:
    async def run() -> list:
        client = polar_mesh.aio.Client(url, url)
        export = asyncio.create_task(client.export_session("s", "calls", timeout_s=20))
        assert await asyncio.to_thread(is_silent.wait, 10)
        await client.aclose()
        return await export

    return asyncio.run(run())


@pytest.mark.parametrize("export", [closed_blocking, closed_by_coroutine])
def test_a_client_that_is_closed_meanwhile_gives_no_part_for_the_whole(export):
    stopping = Stopping(making_s=0)
    server = Server(stopping.register)
    try:
        with pytest.raises(errors.Cancelled):
            export(server.url, stopping.is_silent)
    finally:
        server.stop()
