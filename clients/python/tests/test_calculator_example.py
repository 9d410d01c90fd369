"""examples/calculator/submit.py against a real server, as a user runs it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from support import Server, Trajectories, batch
from test_client import Rollout

from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "calculator" / "submit.py"
SOURCE = pathlib.Path(__file__).parents[1] / "src"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="only in a checkout")


class Mesh(Rollout, Trajectories):
    """A task's batch is there once it was submitted; a consumer knows what it has acknowledged until it is deleted."""

    def __init__(self, plays: bool = True) -> None:
        Rollout.__init__(self)
        Trajectories.__init__(self, [])
        self.plays = plays
        self.acked_of: dict[str, set[int]] = {}

    def register(self, server) -> None:
        Rollout.register(self, server)
        Trajectories.register(self, server)

    def SubmitTask(self, request, context):
        if self.plays and request.spec.task_id not in (one.task_id for one in self.batches):
            played = batch(len(self.batches) + 1, samples=request.spec.num_samples)
            played.task_id = request.spec.task_id
            self.add(played)
        return super().SubmitTask(request, context)

    def StreamTrajectories(self, request, context):
        self.acked = self.acked_of.setdefault(request.consumer, set())
        return super().StreamTrajectories(request, context)

    def DeleteConsumer(self, request, context):
        del self.acked_of[request.consumer]
        return pb.DeleteConsumerResponse()

    def _ready(self, request, sent):
        return [one for one in super()._ready(request, sent) if one.task_id == request.task_id]


def submit(stack, mesh: Mesh, *options: str) -> subprocess.CompletedProcess[str]:
    server = Server(mesh.register)
    stack.callback(server.stop)
    return subprocess.run(
        [sys.executable, "-B", EXAMPLE, "--rollout-url", server.url, "--trajectory-url", server.url, *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
    )


@pytest.mark.parametrize(("options", "tasks"), [([], 2), (["--task-id", "Calc_C2.v1"], 1)])
def test_each_run_prints_the_rewards_of_its_group_and_leaves_no_consumer(stack, options, tasks):
    mesh = Mesh()
    for _ in range(2):
        done = submit(stack, mesh, *options)
        assert done.returncode == 0, done.stderr
        assert [line.split("reward ")[1] for line in done.stdout.splitlines()] == ["0.0", "1.0", "2.0", "3.0"]
        assert mesh.acked_of == {}
    assert len(mesh.batches) == tasks


def test_it_ends_where_no_group_comes(stack):
    mesh = Mesh(plays=False)
    done = submit(stack, mesh, "--timeout-s", "0.5")
    assert done.returncode == 1
    assert "DeadlineExceeded" in done.stderr
    assert mesh.acked_of == {}
