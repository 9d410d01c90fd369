"""Tasks in Harbor's form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from documents import ROOT

import polar_mesh
from polar_mesh import errors, harbor

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
GREETING = ROOT / "examples/harbor/greeting"


def made(folder: Path, toml: str, **files: str) -> Path:
    for name, text in {"task.toml": toml, "instruction.md": "Do it.\n", "tests/test.sh": "true", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def faults(folder: Path, **given) -> dict[str, str]:
    with pytest.raises(errors.InvalidArgument) as refused:
        harbor.task(folder, **given)
    assert refused.value.reason == "INVALID_TASK"
    return {fault.field: fault.description for fault in refused.value.fields}


def test_an_example_is_a_task_of_the_mesh() -> None:
    task = harbor.task(GREETING, image="greeting:1")
    files = task["evaluator"].pop("files")
    assert task == {
        "task_id": "greeting",
        "instruction": "Write one kind sentence to the file greeting.txt in the current folder.",
        "budgets": {"run": 60.0},
        "runtime": {"image": "greeting:1", "workdir": "/app", "cpus": 1, "memory_mb": 512},
        "evaluator": {"strategy": "harbor", "config": {"verifier_timeout": 20.0}, "env": {"WORDS_MAX": "40"}},
    }
    assert [(file["target"], file["mode"] & 0o100) for file in files] == [("test.sh", 0o100)]
    assert files[0]["content"] == (GREETING / "tests/test.sh").read_bytes()
    spec = polar_mesh.task_spec({**task, "evaluator": {**task["evaluator"], "files": files}, "harness": {"name": "pi"}})
    assert spec.evaluator.files[0].content == files[0]["content"]


def test_older_tasks_and_those_that_say_little_are_read(tmp_path: Path) -> None:
    toml = """
        version = "1.0"
        [verifier.env]
        KEY = "${KEY}"
        MODEL = "a-${MODEL:-small}"
        [environment]
        docker_image = "registry/x:1"
        memory = "1.5G"
        storage = "20 GB"
    """
    folder = made(tmp_path, toml, **{"tests/data/a.txt": "a"})
    task = harbor.task(folder, env={"KEY": "k"})
    assert task["runtime"] == {"image": "registry/x:1", "memory_mb": 1536, "storage_mb": 20480}
    assert "budgets" not in task
    assert task["evaluator"]["config"] == {"verifier_timeout": 600}
    assert task["evaluator"]["env"] == {"KEY": "k", "MODEL": "a-small"}
    assert [file["target"] for file in task["evaluator"]["files"]] == ["data/a.txt", "test.sh"]


def test_what_is_not_offered_is_told_all_at_once(tmp_path: Path) -> None:
    toml = """
        [verifier]
        environment_mode = "separate"
        env = {KEY = "${NOT_THERE}"}
        [agent]
        user = "root"
        [environment]
        os = "windows"
        memory = "much"
        [[steps]]
        name = "one"
    """
    folder = made(tmp_path, toml, **{"environment/Dockerfile": "FROM x", "environment/docker-compose.yaml": ""})
    (folder / "tests/link").symlink_to(folder / "task.toml")
    (folder / "tests/test.sh").unlink()
    told = faults(folder, env={})
    assert set(told) == {
        "steps",
        "agent.user",
        "verifier.environment_mode",
        "verifier.env.KEY",
        "environment/Dockerfile",
        "environment/docker-compose.yaml",
        "environment.os",
        "environment.memory",
        "tests/test.sh",
        "tests/link",
    }
    assert told["verifier.env.KEY"] == "NOT_THERE is not set"


def test_what_cannot_be_read_is_told_by_its_place(tmp_path: Path) -> None:
    assert faults(made(tmp_path / "a", "x = [")) == {"task.toml": "is no TOML: Invalid value (at end of document)"}
    folder = made(tmp_path / "b", 'verifier = 3\n[environment]\nenv = "A=b"\nmemory = "512"\nstorage = "0G"')
    (folder / "instruction.md").write_bytes(b"\xff")
    told = faults(folder)
    assert list(told) == ["verifier", "instruction.md", "environment.memory", "environment.storage", "environment.env"]
    assert told["verifier"] == told["environment.env"] == "must be a table"


def test_the_workdir_is_that_of_the_last_stage(tmp_path: Path) -> None:
    for number, (dockerfile, workdir) in enumerate(
        {
            "FROM a AS one\nWORKDIR /build\nFROM b\nCOPY --from=one /build /srv\n": None,
            "FROM a\nWORKDIR /build\nFROM b\nWORKDIR /app\nWORKDIR sub\n": "/app/sub",
            "FROM a\nWORKDIR $HOME/app\n": None,
        }.items()
    ):
        folder = made(tmp_path / str(number), "", **{"environment/Dockerfile": dockerfile})
        assert harbor.task(folder, image="a")["runtime"].get("workdir") == workdir
