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


READY_MS = 1_700_000_000_123


def held(batch_id, ready_ms=READY_MS):
    message = batch(batch_id)
    message.ready_time.FromMilliseconds(ready_ms)
    return read_batch(message, ledger=None)


def test_a_step_that_was_committed_is_found_again(tmp_path):
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        assert (journal.steps, journal.last) == (0, {})
        journal.commit([held(3), held(5)], checkpoint="w-1")
        journal.commit([held(4)], checkpoint="w-2")
    with Journal(path) as again:
        assert again.steps == 2
        assert again.last == {"step": 2, "batches": [[4, READY_MS]], "checkpoint": "w-2"}
        assert [held(one) in again for one in (3, 4, 5, 6)] == [True, True, True, False]


def test_an_id_that_was_given_anew_is_another_batch(tmp_path):
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        journal.commit([held(3)])
        assert held(3, READY_MS + 1) not in journal
        journal.commit([held(3, READY_MS + 1)])
    with Journal(path) as again:
        assert [held(3, READY_MS + later) in again for later in (0, 1, 2)] == [True, True, False]


@pytest.mark.parametrize("torn", [b"{", b'{"step": 2, "batches": [[9, 0]]', b'{"step": 2, "x": "\xc3', b"\0\0\0"])
def test_a_torn_last_line_does_not_count_and_is_cut_off(tmp_path, torn):
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        journal.commit([held(3)])
    path.write_bytes(path.read_bytes() + torn)
    with Journal(path) as journal:
        assert journal.steps == 1
        assert held(9) not in journal
        journal.commit([held(9)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["batches"] for line in lines] == [[[3, READY_MS]], [[9, READY_MS]]]


def test_a_last_line_that_lacks_its_end_alone_counts(tmp_path):
    """Who goes on from an older checkpoint removes lines, with an editor that leaves no end of the last one."""
    path = tmp_path / "steps.jsonl"
    with Journal(path) as journal:
        for batch_id in (3, 4, 5):
            journal.commit([held(batch_id)])
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\r\n\n".join(lines[:2]))
    with Journal(path) as journal:
        assert (journal.steps, held(4) in journal, held(5) in journal) == (2, True, False)
        journal.commit([held(5)])
    with Journal(path) as journal:
        assert (journal.steps, held(5) in journal) == (3, True)


@pytest.mark.parametrize("text", ["my notes", "my notes\n", "[]\n", '{"step": 1}\n', '{"step": 1, "batches": [3]}\n'])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(ValueError, match="line 1 is none of a journal"):
        Journal(path)
    assert path.read_text() == text


def test_the_count_of_steps_is_the_journals(tmp_path):
    with Journal(tmp_path / "steps.jsonl") as journal:
        with pytest.raises(TypeError, match="name that fact otherwise"):
            journal.commit([held(3)], step=700)
        assert held(3) not in journal


OTHER = """
import sys
from polar_mesh import Journal
try:
    Journal(sys.argv[1])
except RuntimeError as error:
    print(error)
"""


def test_two_trainers_do_not_have_one_journal(tmp_path):
    """Both would make each step: the older one goes on with what had been sent to it when the newer one came."""
    path = tmp_path / "steps.jsonl"

    def told():
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", OTHER, str(path)], env=env, check=True, capture_output=True).stdout

    with Journal(path) as journal:
        journal.commit([held(7)])
        assert b"another trainer has this journal open" in told()
        with pytest.raises(RuntimeError, match="another trainer"):
            Journal(path)
        journal.commit([held(8)])
    assert told() == b""
    with Journal(path) as journal:
        assert journal.steps == 2


def test_workers_that_a_killed_trainer_leaves_do_not_keep_the_next_one_out(tmp_path):
    path = tmp_path / "steps.jsonl"
    script = (
        "import os, signal, sys; from polar_mesh import Journal; journal = Journal(sys.argv[1])\n"
        "near, far = os.pipe()\n"
        "if os.fork() == 0: os.write(far, b'.'); sys.stdin.read(); os._exit(0)\n"
        "os.read(near, 1); os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The worker ends with its standard input.
    trainer = subprocess.Popen([sys.executable, "-c", script, str(path)], env=env, stdin=subprocess.PIPE)
    with trainer:
        assert trainer.wait(timeout=20) == -9
        Journal(path).close()


def test_a_line_is_in_the_file_when_commit_returns_even_where_the_process_is_killed(tmp_path):
    path = tmp_path / "steps.jsonl"
    script = (
        "import os, signal, sys; from polar_mesh import Journal; from test_journal import held\n"
        "Journal(sys.argv[1]).commit([held(7)]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", script, str(path)], env=env, check=False)
    assert ended.returncode == -9
    with Journal(path) as journal:
        assert held(7) in journal
