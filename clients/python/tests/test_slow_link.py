"""A batch that takes longer to come than a stream may be silent: it comes, by either client and transport."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import numpy as np
import pytest
from support import Server, Trajectories, batch

from polar_mesh import Client, aio

#: One batch takes more than half a second.
BYTES_S = 500_000
TOKENS = 20_000
SILENCE_S = 0.3


@pytest.fixture
def url(stack):
    """Of a server behind a slow link."""
    server = Server(Trajectories([batch(1, tokens=TOKENS)], progress_s=60).register)
    stack.callback(server.stop)
    listener = socket.create_server(("127.0.0.1", 0))
    stack.callback(listener.close)
    stack.callback(listener.shutdown, socket.SHUT_RDWR)

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", server.port))
            for source, sink, pause_s in ((near, far, 0.0), (far, near, 1 / BYTES_S)):
                threading.Thread(target=carry, args=(source, sink, pause_s), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def carry(source: socket.socket, sink: socket.socket, pause_s: float) -> None:
    """Every byte takes so long."""
    try:
        while data := source.recv(16_384):
            sink.sendall(data)
            time.sleep(len(data) * pause_s)
    except OSError:
        pass
    for one in (source, sink):
        one.close()


def blocking(url, transport):
    with Client(url, url, transport=transport) as client, client.stream("trainer") as stream:
        stream._silence_s = SILENCE_S
        return stream.next(timeout_s=20)


def awaited(url, transport):
    async def run():
        async with aio.Client(url, url, transport=transport) as client, client.stream("trainer") as stream:
            stream._silence_s = SILENCE_S
            return await stream.next(timeout_s=20)

    return asyncio.run(run())


@pytest.mark.parametrize("read", [blocking, awaited])
@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_batch_that_takes_long_comes(url, read, transport):
    """By gRPC it is not seen that it comes: each silence lets the next one be longer."""
    got = read(url, transport).trajectories[1].traces[0].response_ids
    np.testing.assert_array_equal(got, np.arange(TOKENS, dtype=np.int32) + 1100)
