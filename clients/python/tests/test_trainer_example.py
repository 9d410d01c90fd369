"""examples/trainer/consume.py against a real server, as a user runs it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from support import Server, Trajectories, batch

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "trainer" / "consume.py"
SOURCE = pathlib.Path(__file__).parents[1] / "src"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="only in a checkout")


def test_it_prints_groups_acknowledges_them_and_ends(stack):
    service = Trajectories([batch(1, samples=3), batch(2)])
    server = Server(service.register)
    stack.callback(server.stop)
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--trajectory-url", server.url, "--max-batches", "2"],
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

