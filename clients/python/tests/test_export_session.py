"""``export_session`` of both clients, against a server that stops in the middle."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from support import Server

import polar_mesh
import polar_mesh.aio
from polar_mesh import limits
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2_grpc as pb_grpc

LINES = [{"call_id": str(i)} for i in range(3)]


class Stopping(pb_grpc.TrajectoryServiceServicer):
    """Makes the first line for ``making_s``; says no more behind it the first time that it is asked."""

    def __init__(self, making_s: float) -> None:
        self.making_s = making_s
        self.calls = 0

    def ExportSession(self, request, context):
        self.calls += 1
        silent = self.calls == 1
        left = threading.Event()
        context.add_callback(left.set)
        left.wait(self.making_s)
        for line in LINES:
            yield pb.ExportSessionResponse(line=json.dumps(line))
            if silent:
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
