"""What a type checker tells of a trainer's program."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

api = pytest.importorskip("mypy.api")

CONFIGURATION = pathlib.Path(__file__).parents[1] / "pyproject.toml"

PROGRAM = """
import asyncio
from polar_mesh import aio

async def main(client: aio.Client, policy: aio.PolicyClient) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(client.submit({}))
        group.create_task(policy.publish_version(1))
    client.submit({})  # not awaited
    await client.cancel(3)  # no task id
"""


@pytest.fixture(autouse=True)
def recursion_limit():
    """As it was: mypy raises it for its whole process."""
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)


def test_calls_of_the_asyncio_client_are_coroutines(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found, *_ = api.run(["--config-file", str(CONFIGURATION), "--python-version", "3.11", "--cache-dir=/dev/null", str(program)])
    lines = PROGRAM.splitlines()
    told = {lines[int(at) - 1].partition("  # ")[2] for at in re.findall(r"program\.py:(\d+): error", found)}
    assert told == {"not awaited", "no task id"}, found
