"""The calculator task from Python: submit it, wait for the group, print the rewards.

    pip install ./clients/python
    python examples/calculator/submit.py

The same task as task.yaml, a new one at each run. With the mesh of `npm start` or of deploy/docker-compose.yaml running.
"""

from __future__ import annotations

import argparse
import os
import uuid
from pathlib import Path

from test_calculator import ERRORS, VALUES

from polar_mesh import Client

FOLDER = Path(__file__).parent
WORKSPACE = "/polar/session/workspace"
COMMIT = "git -c user.name=polar -c user.email=polar@localhost commit -q -m 'Start of the task'"

RUN = uuid.uuid4().hex[:12]
#: Of this run alone, as what a consumer has acknowledged does not come to it again.
CONSUMER = f"calculator-{RUN}"


def upload(name: str) -> dict[str, object]:
    return {"upload_file": {"target": f"{WORKSPACE}/{name}", "content": (FOLDER / name).read_bytes()}}


def calculator(task_id: str) -> dict[str, object]:
    return {
        "task_id": task_id,
        "instruction": "Implement the methods `term` and `factor` of calculator.py, so that every case of "
        "test_calculator.py passes: run it with `python3 test_calculator.py`. Change calculator.py only.",
        "num_samples": 4,
        "budgets": {"run": 300},
        "runtime": {
            "workdir": WORKSPACE,
            "env": {"PYTHONDONTWRITEBYTECODE": "1"},
            "prepare": [
                upload("calculator.py"),
                upload("test_calculator.py"),
                {"exec": {"cwd": WORKSPACE, "command": f"git init -q && git add -A && {COMMIT}"}},
            ],
        },
        "harness": {"name": "pi", "model_name": "scripted-qwen3"},
        "builder": {"strategy": "prefix_merging"},
        "evaluator": {
            "strategy": "test_on_output",
            "config": {
                "repo_dir": WORKSPACE,
                "test_command": "python3 test_calculator.py",
                "test_timeout": 60,
                "exclude_patterns": ["test_calculator.py"],
                "expected_output_json": dict.fromkeys([*VALUES, *ERRORS], "PASSED"),
            },
        },
        "sampling": {"seed_base": 0},
    }


def show(client: Client, task_id: str, timeout_s: float) -> None:
    with client.stream(CONSUMER, task_id=task_id) as batches:
        batch = batches.next(timeout_s)
        for trajectory in batch.trajectories:
            print(f"{trajectory.session_id}: {trajectory.outcome}, reward {trajectory.reward}")
        batch.ack()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollout-url", default=os.environ.get("POLAR_ROLLOUT_URL") or "http://127.0.0.1:8080")
    parser.add_argument("--trajectory-url", default=os.environ.get("POLAR_TRAJECTORY_URL") or "http://127.0.0.1:8070")
    parser.add_argument("--task-id", default=f"calculator-{RUN}", help="a new one at each run, if not given")
    parser.add_argument("--timeout-s", type=float, default=1800, help="for the whole group (default: 1800)")
    options = parser.parse_args()
    with Client(options.rollout_url, options.trajectory_url) as client:
        client.submit(calculator(options.task_id))
        try:
            show(client, options.task_id, options.timeout_s)
        finally:
            client.delete_consumer(CONSUMER)


if __name__ == "__main__":
    main()
