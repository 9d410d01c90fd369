"""A program that ends with a stream or a watch open, as scripts and notebooks do."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).parents[1] / "src"

#: Threads stop where they are: here with the lock of a call, as gRPC's have it now and then.
CALL = """
import threading

class Call:
    def __init__(self, *messages):
        self.lock, self.messages, self.held = threading.Lock(), list(messages), threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        if self.messages:
            return self.messages.pop()
        with self.lock:
            self.held.set()
            threading.Event().wait()

    def cancel(self):
        with self.lock:
            pass
"""

STREAM = """
call = Call()
client._open_stream = lambda _: call
stream = client.stream("trainer")
try:
    stream.next(timeout_s=0)
except errors.DeadlineExceeded:
    pass
"""

WATCH = """
call = Call(WatchTaskResponse(cursor="1", session={"session_id": "s"}))
client._rollout = SimpleNamespace(WatchTask=lambda _: call)
changes = client.watch("t")
next(changes)
"""

PROGRAM = """
from types import SimpleNamespace
from call import Call
from polar_mesh import Client, errors
from polar_mesh.gen.polar.scheduler.v1.scheduler_service_pb2 import WatchTaskResponse

client = Client()
{}
call.held.wait()
print("done")
"""


@pytest.mark.parametrize("opened", [STREAM, WATCH], ids=["stream", "watch"])
def test_it_ends(opened, tmp_path):
    (tmp_path / "call.py").write_text(CALL)
    known = {**os.environ, "PYTHONPATH": f"{SOURCE}:{tmp_path}"}
    command = [sys.executable, "-c", PROGRAM.format(opened)]
    ended = subprocess.run(command, env=known, capture_output=True, timeout=30)
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"done\n", b"", 0)
