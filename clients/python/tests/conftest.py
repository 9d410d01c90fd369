"""Fixtures: what is started is stopped, whatever the test does."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading

import pytest

#: They are run by `npm run test:trainers`, in an environment that has torch and TRL.
collect_ignore = [] if importlib.util.find_spec("torch") else ["trainers"]
# All that they need is on this machine: no hub is asked, nothing is reported to one.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TRL_EXPERIMENTAL_SILENCE="1")


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
