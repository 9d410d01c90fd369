"""Exports of a consumer of a mesh that is slow, or silent: what has not come is not taken for what is not there."""

from __future__ import annotations

import contextlib
import socket
import time

import grpc
import pytest
from export_mesh import Mesh
from support import Server, abort

from polar_mesh import Client, errors
from polar_mesh.export import export

GROUPS = 4
IDLE_S = 0.3


class Slow(Mesh):
    """Takes longer than an export waits, for its stream and for each batch of that."""

    def StreamTrajectories(self, request, context):
        time.sleep(3 * IDLE_S)
        for response in super().StreamTrajectories(request, context):
            if response.HasField("batch"):
                time.sleep(2 * IDLE_S)
            yield response


class Reserved(Mesh):
    """Tells who consumes no more than that."""

    def ListConsumers(self, request, context):
        abort(context, grpc.StatusCode.PERMISSION_DENIED, "scope read is needed", "PERMISSION_DENIED")


class Sought(Mesh):
    """While it sends the third batch, somebody seeks back to the first one."""

    def StreamTrajectories(self, request, context):
        first = None
        for response in super().StreamTrajectories(request, context):
            first = first or response
            yield response
            if response.batch.batch_id == 3 and self.seeks == 0:
                self.seeks = first.seeks = 1
                yield first


@pytest.fixture(params=["http", "grpc"])
def serve(request, stack):
    """Starts a mesh; gives a client of it."""

    def start(service):
        server = Server(service.register)
        stack.callback(server.stop)
        client = Client(server.url, server.url, timeout_s=10, transport=request.param)
        stack.callback(client.close)
        return client

    return start


def test_a_slow_mesh_is_waited_for(serve, tmp_path):
    service = Slow(GROUPS)
    result = export(serve(service), tmp_path, consumer="export", idle_s=IDLE_S)
    assert (result.groups, service.acked) == (GROUPS, set(range(1, GROUPS + 1)))


def test_what_a_seek_brings_again_is_acknowledged_when_it_is_in_a_part(serve, tmp_path):
    service = Sought(GROUPS)
    saw = []
    result = export(
        serve(service), tmp_path, consumer="export", idle_s=1, on_progress=lambda _: saw.append(set(service.acked))
    )
    assert saw == [set()] * (GROUPS + 1)
    assert (result.groups, service.acked) == (GROUPS, set(range(1, GROUPS + 1)))


def test_who_may_not_ask_whether_there_is_more_goes_by_the_time(serve, tmp_path):
    assert export(serve(Reserved(GROUPS)), tmp_path, consumer="export", idle_s=1).groups == GROUPS


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_mesh_that_says_nothing_ends_in_an_error(tmp_path, transport):
    """Connections are taken, and nobody answers."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, url, timeout_s=1, transport=transport) as client, pytest.raises(errors.PolarError):
            export(client, tmp_path, consumer="export", idle_s=IDLE_S)
