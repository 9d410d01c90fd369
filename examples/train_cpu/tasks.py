"""The task as the mesh gets it: one house, which every session of the group plays."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import doors

FOLDER = Path(__file__).parent
WORKSPACE = "/polar/session/workspace"
#: Python that starts fast: no site packages, no user's settings.
PYTHON = "/usr/bin/python3 -S -E -B"


def task(task_id: str, samples: int, rng: random.Random) -> dict[str, Any]:
    """A task for ``Client.submit``, with a house drawn by ``rng``."""
    keys = doors.draw_keys(rng)
    files = {name: (FOLDER / name).read_bytes() for name in ("doors.py", "agent.py", "judge.py")}
    files["keys.json"] = json.dumps(keys).encode()
    return {
        "task_id": task_id,
        "instruction": doors.instruction(keys),
        "num_samples": samples,
        "runtime": {
            "workdir": WORKSPACE,
            "prepare": [
                *(
                    {"upload_file": {"target": f"{WORKSPACE}/{name}", "content": text}}
                    for name, text in files.items()
                ),
                {"exec": {"cwd": WORKSPACE, "command": COMMIT}},
            ],
        },
        "harness": {"name": "shell", "command": {"command": f"{PYTHON} agent.py"}},
        "builder": {"strategy": "prefix_merging"},
        "evaluator": {
            "strategy": "test_on_output",
            "config": {
                "repo_dir": WORKSPACE,
                "test_command": f"{PYTHON} judge.py",
                "expected_output_json": {"out": "PASSED"},
            },
        },
        "sampling": {"temperature": 1.0},
    }


COMMIT = (
    "git init -q && git add -A && git -c user.name=polar -c user.email=polar@localhost commit -q -m house"
)
