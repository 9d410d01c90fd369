"""Tasks in Harbor's form (``task.toml``, ``instruction.md``, ``tests/``) as tasks of the mesh. Needs Python 3.11."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import FieldFault, InvalidArgument

#: Harbor's own, where a task does not say it.
VERIFIER_SECONDS = 600
MIB_OF = {"K": 1 / 2**10, "M": 1, "G": 2**10, "T": 2**20}
#: What is not offered, by where ``task.toml`` says it.
UNOFFERED = {
    "steps": "tasks of several steps are not offered",
    "agent.user": "all commands of a sandbox have one user",
    "verifier.user": "all commands of a sandbox have one user",
    "verifier.environment": "verifiers in a sandbox of their own are not offered",
    "environment.healthcheck": "it is not waited for: let a command of runtime.prepare do so",
    "environment.mcp_servers": "name them as harness.mcp_servers",
}


def task(folder: str | os.PathLike[str], *, image: str = "", env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A mapping for ``Client.submit`` of all that the task says, but for the harness, which it leaves open.

    What it says of networks is left to ``runtime.network``; without that a sandbox reaches nothing. Its solution is not read.

    Args:
        folder: The task; its name is the ``task_id``.
        image: That its Dockerfile was built to. Default: its ``docker_image``.
        env: Where ``${NAME}`` and ``${NAME:-default}`` of its variables are looked up. Default: those of this process.

    Raises:
        InvalidArgument: reason INVALID_TASK, with all that is wrong or not offered, by its place in the folder.
        OSError: it cannot be read.
    """
    reader = _Reader(Path(folder), os.environ if env is None else env)
    found = reader.task(image)
    if reader.faults:
        raise InvalidArgument(
            f"{folder} cannot be a task of the mesh",
            code="INVALID_ARGUMENT",
            reason="INVALID_TASK",
            boundary="task",
            fields=tuple(reader.faults),
        )
    return found


class _Reader:
    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.faults: list[FieldFault] = []
        self._folder = folder
        self._env = env
        self._toml = self._parsed("task.toml")

    def task(self, image: str) -> dict[str, Any]:
        for field, why in UNOFFERED.items():
            self._require(self._get(field) is None, field, why)
        self._require(
            self._get("verifier.environment_mode") in (None, "shared"),
            "verifier.environment_mode",
            UNOFFERED["verifier.environment"],
        )
        run = self._get("agent.timeout_sec")
        return {
            "task_id": self._folder.resolve().name,
            "instruction": self._text("instruction.md").strip(),
            **({} if run is None else {"budgets": {"run": run}}),
            "runtime": self._runtime(image),
            "evaluator": {
                "strategy": "harbor",
                "config": {"verifier_timeout": self._get("verifier.timeout_sec") or VERIFIER_SECONDS},
                "env": self._variables("verifier.env"),
                "files": self._tests(),
            },
        }

    def _runtime(self, image: str) -> dict[str, Any]:
        environment = self._folder / "environment"
        dockerfile = environment / "Dockerfile"
        image = image or self._get("environment.docker_image") or ""
        self._require(bool(image) or not dockerfile.exists(), "environment/Dockerfile", "build it, and give its image as `image`")
        for name in ("docker-compose.yaml", "docker-compose.yml"):
            self._require(not (environment / name).exists(), f"environment/{name}", "several containers are not offered")
        self._require(self._get("environment.os") in (None, "linux"), "environment.os", "sandboxes are Linux")
        found = {
            "image": image,
            "workdir": self._get("environment.workdir") or self._workdir_in(dockerfile),
            "cpus": self._get("environment.cpus"),
            "memory_mb": self._mebibytes("memory"),
            "storage_mb": self._mebibytes("storage"),
            "gpus": self._get("environment.gpus"),
            "env": self._variables("environment.env"),
        }
        return {key: value for key, value in found.items() if value}

    def _tests(self) -> list[dict[str, Any]]:
        folder = self._folder / "tests"
        self._require((folder / "test.sh").is_file(), "tests/test.sh", "is not there")
        files = []
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                self._require(False, f"tests/{name}", "is a link: it would send what lies outside")
            elif path.is_file():
                files.append({"target": name, "content": path.read_bytes(), "mode": path.stat().st_mode & 0o777})
        return files

    def _mebibytes(self, name: str) -> int | None:
        """``memory_mb``, or ``memory`` of older tasks, as in ``8G``."""
        of_now, of_old = self._get(f"environment.{name}_mb"), self._get(f"environment.{name}")
        if of_now is not None or of_old is None:
            return of_now
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", str(of_old), re.IGNORECASE)
        if match is None or float(match[1]) == 0:
            self._require(False, f"environment.{name}", f"{of_old!r} is no size with its unit, as 8G")
            return None
        return max(1, round(float(match[1]) * MIB_OF[match[2].upper()]))

    def _variables(self, field: str) -> dict[str, str]:
        found = self._table(field)
        return {name: self._resolved(str(text), f"{field}.{name}") for name, text in found.items()}

    def _resolved(self, text: str, field: str) -> str:
        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            known = self._env.get(name) or default
            self._require(known is not None or name in self._env, field, f"{name} is not set")
            return known or ""

        return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", value, text)

    def _get(self, field: str) -> Any:
        *above, name = field.split(".")
        return self._table(".".join(above)).get(name)

    def _table(self, field: str) -> Mapping[str, Any]:
        """Empty where it is not there."""
        if not field:
            return self._toml
        found = self._get(field)
        if found is None or isinstance(found, Mapping):
            return found or {}
        self._require(False, field, "must be a table")
        return {}

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            self._require(False, name, f"is not in UTF-8: {error}")
            return ""

    def _parsed(self, name: str) -> Mapping[str, Any]:
        import tomllib  # Not in Python 3.10, which the rest of the client takes.

        try:
            return tomllib.loads(self._text(name))
        except tomllib.TOMLDecodeError as error:
            self._require(False, name, f"is no TOML: {error}")
            return {}

    def _workdir_in(self, dockerfile: Path) -> str | None:
        """That of its last stage, where that sets one and it is plain."""
        if not dockerfile.exists():
            return None
        text = self._text(dockerfile.relative_to(self._folder).as_posix())
        stage = re.split(r"^[ \t]*FROM\s", text, flags=re.MULTILINE | re.IGNORECASE)[-1]
        found = re.findall(r"^[ \t]*WORKDIR[ \t]+[\"']?([^\s\"']+)", stage, re.MULTILINE | re.IGNORECASE)
        workdir = posixpath.normpath(posixpath.join("", *found)) if found else ""
        return workdir if workdir.startswith("/") and "$" not in workdir else None

    def _require(self, ok: bool, field: str, why: str) -> None:
        fault = FieldFault(field, why)
        if not ok and fault not in self.faults:
            self.faults.append(fault)
