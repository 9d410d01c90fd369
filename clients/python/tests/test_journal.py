"""The trainer's own record of steps: what counts, what is torn, what survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support import batch

from polar_mesh import Journal
from polar_mesh.batches import read_batch


def held(batch_id):
    return read_batch(batch(batch_id), ledger=None)


def test_a_step_that_was_committed_is_found_again(tmp_path):
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        assert (journal.steps, journal.last) == (0, {})
        journal.commit([held(3), held(5)], checkpoint="w-1")
        journal.commit([held(4)], checkpoint="w-2")
    with Journal(path) as again:
        assert again.steps == 2
        assert again.last == {"step": 2, "batch_ids": [4], "checkpoint": "w-2"}
        assert [held(one) in again for one in (3, 4, 5, 6)] == [True, True, True, False]


@pytest.mark.parametrize("torn", [b"{", b'{"step": 2, "batch_ids": [9]}', b'{"step": 2, "batch_ids": [9], "x": "\xc3'])
def test_a_torn_last_line_does_not_count_and_is_cut_off(tmp_path, torn):
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        journal.commit([held(3)])
    path.write_bytes(path.read_bytes() + torn)
    with Journal(path) as journal:
        assert journal.steps == 1
        assert held(9) not in journal
        journal.commit([held(9)])
    assert [json.loads(line)["batch_ids"] for line in path.read_text().splitlines()] == [[3], [9]]


def test_a_line_is_in_the_file_when_commit_returns_even_where_the_process_is_killed(tmp_path):
    path = tmp_path / "steps.jsonl"
    script = (
        "import os, signal, sys; from types import SimpleNamespace; from polar_mesh import Journal\n"
        "Journal(sys.argv[1]).commit([SimpleNamespace(batch_id=7)]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", script, str(path)], env=env, check=False)
    assert ended.returncode == -9
    with Journal(path) as journal:
        assert held(7) in journal
