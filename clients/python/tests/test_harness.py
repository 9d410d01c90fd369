"""The helper that runs a Python callable as a harness, as a program of its own and as the file alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "src" / "polar_mesh" / "harness.py"
AGENT = """
import asyncio

def solve(session):
    print(session.instruction, session.base_url, session.root_url, session.api_key, session.artifacts_dir)

def count(session):
    return 7

def many(session):
    return 256

def fail(session):
    raise ValueError("no idea")

async def wait(session):
    await asyncio.sleep(0)
    return 3

def steps(session):
    yield "never"

async def late_steps(session):
    yield "never"

def verbatim(session):
    print(session.instruction.encode())

class Agents:
    @staticmethod
    def late(session):
        print("late")
"""

TYPED = """
import polar_mesh.harness
from polar_mesh.harness import Session

def solve(session: Session) -> None:
    print(isinstance(session, Session), Session is polar_mesh.harness.Session)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "instruction.md").write_text("Do it.")
    env = {
        "PATH": os.environ["PATH"],
        "POLAR_INSTRUCTION_FILE": str(tmp_path / "instruction.md"),
        "OPENAI_BASE_URL": "http://127.0.0.1:4141/s/secret/v1",
        "OPENAI_API_KEY": "secret",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:4141/s/secret",
        "SESSION_ID": "s-0",
        "TASK_ID": "t",
        "ARTIFACTS_DIR": "/polar/session/artifacts",
    }

    def go(*arguments, how=(str(FILE),), without=()):
        left = {name: value for name, value in env.items() if name not in without}
        command = [sys.executable, "-B", *how, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=left, capture_output=True, text=True, check=False)

    return go


def test_calls_the_function_with_the_session(run):
    done = run("my_agent:solve")
    assert done.returncode == 0, done.stderr
    url = "http://127.0.0.1:4141/s/secret"
    assert done.stdout == f"Do it. {url}/v1 {url} secret /polar/session/artifacts\n"


def test_runs_as_a_module_too(run):
    source = str(FILE.parents[1])
    script = f"import sys, runpy; sys.path.insert(0, {source!r}); runpy.run_module('polar_mesh.harness', run_name='__main__')"
    done = run("my_agent:Agents.late", how=("-c", script))
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr


def test_is_what_an_agent_imports_where_the_file_alone_was_uploaded(run, tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    done = run("typed:solve", how=("-S", str(FILE)))
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr


@pytest.mark.parametrize(("name", "code"), [("count", 7), ("wait", 3), ("fail", 1), ("many", 1)])
def test_ends_as_the_function_does(run, name, code):
    done = run(f"my_agent:{name}")
    assert done.returncode == code
    assert ("no idea" in done.stderr) == (name == "fail")


def test_gives_the_instruction_as_it_is_whatever_the_locale(run, tmp_path):
    instruction = "é\r\n\u2028b\r".encode()
    (tmp_path / "instruction.md").write_bytes(instruction)
    done = run("my_agent:verbatim", how=("-X", "utf8=0", str(FILE)))
    assert (done.returncode, done.stdout) == (0, f"{instruction}\n"), done.stderr


@pytest.mark.parametrize("name", ["steps", "late_steps"])
def test_refuses_a_generator_of_which_nothing_would_run(run, name):
    done = run(f"my_agent:{name}")
    assert done.returncode == 1
    assert "is a generator" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argument", "says"),
    [("my_agent", "no module:function"), ("other:solve", "no module other"), ("my_agent:other", "no function other")],
)
def test_says_what_is_wrong_with_a_name(run, argument, says):
    done = run(argument)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_says_that_this_is_no_sandbox(run):
    done = run("my_agent:solve", without=("OPENAI_BASE_URL",))
    assert done.returncode == 1
    assert "OPENAI_BASE_URL is not set" in done.stderr
