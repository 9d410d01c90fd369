"""Fixtures: what is started is stopped, whatever the test does."""

from __future__ import annotations

import contextlib
import threading

import pytest


@pytest.fixture
def stack():
    """Closes what a test opens, last one first."""
    with contextlib.ExitStack() as exits:
        yield exits


@pytest.fixture(autouse=True)
def no_reader_left():
    """A closed stream leaves no thread behind."""
    yield
    for thread in threading.enumerate():
        if thread.name == "polar-reader":
            thread.join(timeout=5)
            assert not thread.is_alive(), "a stream's reader is left"
