"""The Python blocks of the documents, and a mesh for them to run against."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import polar_mesh
from polar_mesh import aio, channel, http_calls, http_stream

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "clients/python/src"
DOCUMENTS = [ROOT / "README.md", ROOT / "clients/python/README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: After so many a loop over a stream is over.
BATCHES = 2


def blocks() -> list[Any]:
    """Each as a parameter of a test, named by its document and line."""
    found = []
    for document in DOCUMENTS:
        for match in re.finditer(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
            line = document.read_text()[: match.start()].count("\n") + 1
            found.append(pytest.param(match[1], id=f"{document.relative_to(ROOT)}:{line}"))
    return found


def needs_torch(text: str) -> bool:
    return "polar_mesh.torch" in text


def can_run(text: str) -> bool:
    """Not where it leaves out arguments, or names certificates."""
    return "(..., " not in text and 'ca="' not in text


def run(text: str, names: dict[str, Any]) -> None:
    """Execute it, with these names and a time for what it awaits."""
    code = compile(text, "document", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coming = eval(code, {**names, "polar_mesh": polar_mesh})
    if inspect.iscoroutine(coming):
        asyncio.run(asyncio.wait_for(coming, 60))


@contextlib.contextmanager
def everywhere(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever address is named, it is this one; streams end after ``BATCHES``."""
    split = channel.split_url
    with monkeypatch.context() as patch:
        for module in (channel, http_calls, http_stream):
            patch.setattr(module, "split_url", lambda _: split(url))
        patch.setattr(polar_mesh.TrajectoryStream, "__next__", _next)
        patch.setattr(aio.TrajectoryStream, "__anext__", _anext)
        yield


def _next(stream: Any) -> polar_mesh.Batch:
    if _over(stream):
        raise StopIteration
    return stream.next(timeout_s=10)


async def _anext(stream: Any) -> polar_mesh.Batch:
    if _over(stream):
        raise StopAsyncIteration
    return await stream.next(timeout_s=10)


def _over(stream: Any) -> bool:
    stream.asked = getattr(stream, "asked", 0) + 1
    return stream.asked > BATCHES
