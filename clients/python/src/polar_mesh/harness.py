"""Runs a Python callable as a harness: an agent that needs no program of its own.

    python3 -m polar_mesh.harness my_agent:solve     # polar_mesh is installed in the sandbox's image
    python3 harness.py my_agent:solve                # or this file alone was uploaded: it needs the standard library only

is the command of a task's `shell` harness. The callable is given a `Session`, may be a coroutine function, and ends the
run: what it raises is printed and ends it with exit code 1, a number that it returns is the exit code, anything else is 0.
Every model call that it makes at `session.base_url` is recorded.
"""

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Session:
    """What a harness is told. The name of the model is free: the mesh decides which one answers."""

    instruction: str
    #: OpenAI's chat and Responses API, with `/v1`.
    base_url: str
    #: The same without a version: Anthropic's Messages API, and Google's.
    root_url: str
    api_key: str
    session_id: str
    task_id: str
    #: Kept where the task names it under `artifacts`.
    artifacts_dir: Path

    @classmethod
    def from_environment(cls, environ: "os._Environ[str] | dict[str, str]" = os.environ) -> "Session":
        """Of the sandbox that this process runs in. Raises SystemExit outside of one."""
        try:
            return cls(
                # Byte by byte: neither the locale nor a change of line ends is to touch it.
                instruction=Path(environ["POLAR_INSTRUCTION_FILE"]).read_bytes().decode(),
                base_url=environ["OPENAI_BASE_URL"],
                root_url=environ["ANTHROPIC_BASE_URL"],
                api_key=environ["OPENAI_API_KEY"],
                session_id=environ["SESSION_ID"],
                task_id=environ["TASK_ID"],
                artifacts_dir=Path(environ["ARTIFACTS_DIR"]),
            )
        except KeyError as error:
            raise SystemExit(f"{error.args[0]} is not set: this is no sandbox of a polar-mesh") from None


def run(agent: Callable[[Session], object]) -> int:
    """Call it with the session of this sandbox; the exit code. What it raises goes to the caller."""
    session = Session.from_environment()
    returned = agent(session)
    if inspect.isawaitable(returned):
        returned = asyncio.run(_awaited(returned))
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise SystemExit("the function is a generator, of which nothing runs by a call: it must not `yield`")
    if not isinstance(returned, int) or isinstance(returned, bool):
        return 0
    # Of another number the system would keep the last byte, and 256 would be success.
    return returned if 0 <= returned <= 255 else 1


async def _awaited(value: Awaitable[object]) -> object:
    return await value


def load(name: str) -> Callable[[Session], object]:
    """The callable `module:function`. The working directory is searched for modules first."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise SystemExit(f"{name!r} is no module:function")
    sys.path.insert(0, os.getcwd())
    _stand_in()
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] and error.name != module:
            raise
        raise SystemExit(f"there is no module {module} here or among the installed packages") from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise SystemExit(f"{module} has no function {attribute}")
    return found


def _stand_in() -> None:
    """Uploaded alone, this file is the `polar_mesh.harness` that agents import `Session` from."""
    if "polar_mesh" not in sys.modules and importlib.util.find_spec("polar_mesh") is None:
        package = sys.modules["polar_mesh"] = types.ModuleType("polar_mesh")
        sys.modules["polar_mesh.harness"] = sys.modules[__name__]
        vars(package)["harness"] = sys.modules[__name__]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise SystemExit("usage: python3 -m polar_mesh.harness module:function")
    return run(load(arguments[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
