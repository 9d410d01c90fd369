"""The examples of examples/trainer against a real server."""

from __future__ import annotations

import os
import pathlib
import runpy
import subprocess
import sys

import grpc
import numpy as np
import pytest
from support import Server, Trajectories, abort, batch

from polar_mesh import Client, Journal, errors
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "trainer"
SOURCE = pathlib.Path(__file__).parents[1] / "src"

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="only in a checkout")


def test_it_prints_groups_acknowledges_them_and_ends(stack):
    service = Trajectories([batch(1, samples=3), batch(2)])
    server = Server(service.register)
    stack.callback(server.stop)
    done = subprocess.run(
        [sys.executable, EXAMPLES / "consume.py", "--trajectory-url", server.url, "--max-batches", "2"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "batch 1: task t-1, group g0"
    assert "reward 0.000, advantage -1.500" in lines[1]
    assert "reward 2.000, advantage +1.500" in lines[3]
    # The odd ids of 8 are trained: -(1001+1003+1005+1007)/7 and likewise for the others.
    # Each of the three sessions counts a third, and each of its four tokens a quarter of that.
    objective = sum(
        advantage / 12 * -sum(np.arange(1, 8, 2) + 1000 + index * 100) / 7
        for index, advantage in ((0, -1.5), (1, 0.0), (2, 1.5))
    )
    assert lines[4] == f"  step: 12 tokens, objective {objective:.4f}"
    assert service.acked == {1, 2}


class Sought(Trajectories):
    """The consumer is sought back behind its first batch, which comes again."""

    def StreamTrajectories(self, request, context):
        first, second = self.batches
        yield pb.StreamTrajectoriesResponse(batch=first, seeks=0)
        self.seeks = 1
        for one in (first, second):
            yield pb.StreamTrajectoriesResponse(batch=one, seeks=1)
        with self._changed:
            self._changed.wait_for(lambda: self.acked == {1, 2}, timeout=10)
        abort(context, grpc.StatusCode.NOT_FOUND, "the consumer was deleted", "NOT_FOUND")


def test_a_group_that_a_seek_brings_again_before_its_step_counts_once(stack, tmp_path):
    server = Server(Sought([batch(1), batch(2)]).register)
    stack.callback(server.stop)
    train = runpy.run_path(str(EXAMPLES / "exactly_once.py"))["train"]
    with Journal(tmp_path / "steps.jsonl") as journal, Client(trajectory_url=server.url) as client:
        with pytest.raises(errors.NotFound):
            train(client, journal, "trainer", 2, 0)
        assert [batch_id for batch_id, _ in journal.last["batches"]] == [1, 2]
