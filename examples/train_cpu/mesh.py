"""What a run needs around the trainer, as processes on free ports: the engine, and a whole mesh in front of it."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
#: Sessions that run at once; each waits most of its time.
RUNS_AT_ONCE = 16
END_SECONDS = 30


@dataclass(frozen=True)
class Site:
    """Where a trainer finds what it needs."""

    engine_url: str
    rollout_url: str
    trajectory_url: str
    proxy_url: str
    #: The trainer puts weights there for the engine.
    folder: Path


@contextlib.contextmanager
def site(base: Path, seed: int = 0) -> Iterator[Site]:
    """An engine that serves the base model, and a mesh; both end with the block."""
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="polar-train-", ignore_cleanup_errors=True)
            )
        )
        engine_command = [sys.executable, FOLDER / "engine.py", base, "--port", "0", "--seed", str(seed)]
        engine = stack.enter_context(running(engine_command, folder))
        topology = folder / "topology.yaml"
        ports = _free_ports(7)
        topology.write_text(json.dumps(_topology(ports, engine["url"], folder)))
        polar = [ROOT / "node_modules/.bin/node", ROOT / "bin/polar.js"]
        stack.enter_context(running([*polar, "up", "-c", topology, "--json"], folder))
        at = "http://127.0.0.1:{}".format
        yield Site(engine["url"], at(ports[0]), at(ports[1]), at(ports[2]), folder)


def _topology(ports: Sequence[int], engine_url: str, folder: Path) -> dict[str, Any]:
    """JSON is YAML, too."""
    rollout, reconstructor, proxy, prewarm, harness, evaluator, nats = ports
    node = {
        "id": "local",
        "host": "127.0.0.1",
        "port": proxy,
        "runtime_prewarm_port": prewarm,
        "harness_executor_port": harness,
        "evaluator_port": evaluator,
        "inference": {"engine": "sglang", "base_url": engine_url, "stream": "made", "mode": "token"},
        "max_run_workers": RUNS_AT_ONCE,
        "max_postrun_workers": RUNS_AT_ONCE,
    }
    return {
        "rollout": {"host": "127.0.0.1", "port": rollout},
        "reconstructor": {"host": "127.0.0.1", "port": reconstructor},
        "gateway": {"nodes": [node]},
        "nats": {"port": nats},
        "data_dir": str(folder / "mesh"),
    }


@contextlib.contextmanager
def running(command: Sequence[str | Path], folder: Path) -> Iterator[dict[str, Any]]:
    """A process until the end of the block; what it says in its first line of standard output, which is JSON."""
    name = Path(command[1]).name
    log = folder / f"{name}.log"
    # TERM, too, when this process is killed.
    command = ["setpriv", "--pdeathsig", "TERM", *command]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{name} did not start: {log.read_text()[-2000:]}")
            yield json.loads(line)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
