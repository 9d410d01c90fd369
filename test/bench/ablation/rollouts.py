"""Sessions of the game of examples/train_cpu, played once through a whole mesh: their calls and rewards, stored."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import doors
from mesh import Site
from polar_mesh import Client, Trajectory
from tasks import task

GROUP_SIZE = 16
#: Without a group for so long, something is broken.
GROUP_SECONDS_MAX = 300


@dataclass(frozen=True)
class Length:
    """How long a game is: it is over with so many doors open, or with so many calls."""

    doors: int
    calls: int

    @property
    def name(self) -> str:
        return f"{self.calls}-calls"


@dataclass(frozen=True)
class Stored:
    """Where the sessions of one length lie, as JSON lines."""

    folder: Path

    @property
    def calls(self) -> Path:
        """As `polar export --calls` writes them, with the session of each."""
        return self.folder / "calls.jsonl"

    @property
    def sessions(self) -> Path:
        """``session_id``, ``task_id`` and ``reward``, group after group."""
        return self.folder / "sessions.jsonl"

    @property
    def is_there(self) -> bool:
        """The sessions are written last."""
        return self.sessions.exists()


def record(where: Site, length: Length, groups: int, into: Stored, seed: int) -> None:
    """Play ``groups`` groups and store them."""
    into.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    names = [f"{length.name}-{number}" for number in range(groups)]
    with Client(where.rollout_url, where.trajectory_url) as client, into.calls.open("w") as calls:
        for name in names:
            client.submit(house(length, name, rng))
        sessions: list[dict[str, Any]] = []
        with client.stream("ablation", max_unacked=groups) as stream:
            for _ in names:
                batch = stream.next(timeout_s=GROUP_SECONDS_MAX)
                for one in batch.trajectories:
                    sessions.append(_session(one))
                    calls.writelines(_lines(client, one.session_id))
                batch.ack()
    into.sessions.write_text("".join(f"{json.dumps(one)}\n" for one in sessions))


def house(length: Length, task_id: str, rng: random.Random) -> dict[str, Any]:
    """The example's task with a game of this length: by its rules, here and in the sandbox."""
    with mock.patch.multiple(doors, TO_OPEN=length.doors, CALLS_MAX=length.calls):
        made = task(task_id, GROUP_SIZE, rng)
    for step in made["runtime"]["prepare"]:
        file = step.get("upload_file")
        if file and file["target"].endswith("/doors.py"):
            file["content"] += f"\nTO_OPEN, CALLS_MAX = {length.doors}, {length.calls}\n".encode()
    return made


def _session(of: Trajectory) -> dict[str, Any]:
    return {"session_id": of.session_id, "task_id": of.task_id, "reward": of.reward}


def _lines(client: Client, session_id: str) -> Iterator[str]:
    for call in client.export_session(session_id, "calls"):
        yield f"{json.dumps({'session_id': session_id, **call})}\n"
