"""What the documents' Python says is there, modules, names, methods and their arguments; and it runs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import shutil
import sys

import pytest
from documents import BATCHES, DOCUMENTS, ROOT, SOURCE, blocks, can_run, everywhere, needs_torch, run
from export_mesh import Mesh
from support import Server, Trajectories, batch
from test_captures import External
from test_evaluator import Evaluations
from test_policy import Policies

import polar_mesh
from polar_mesh.gen.polar.common.v1.task_pb2 import TaskSpec

#: What names stand for in them.
OBJECTS = {
    "client": polar_mesh.Client,
    "policy": polar_mesh.PolicyClient,
    "evaluator": polar_mesh.EvaluatorClient,
    "pause": polar_mesh.Pause,
    "journal": polar_mesh.Journal,
    "stream": polar_mesh.TrajectoryStream,
    "batch": polar_mesh.Batch,
    "trajectory": polar_mesh.Trajectory,
    "trace": polar_mesh.Trace,
}


def module(name: str):
    """None where it needs what is not installed here."""
    if name in ("polar_mesh.torch", "polar_mesh.off_policy") and importlib.util.find_spec("torch") is None:
        return None
    if name.startswith("polar_mesh.bridges") and importlib.util.find_spec("trl") is None:
        return None
    return importlib.import_module(name)


class Reader(ast.NodeVisitor):
    """Resolves names by what was imported, and by ``OBJECTS``."""

    def __init__(self) -> None:
        self.known: dict[str, object] = dict(OBJECTS)
        self.checked = 0

    def visit_Import(self, node):
        for one in node.names:
            if one.name.startswith("polar_mesh") and module(one.name) is not None:
                self.known["polar_mesh"] = polar_mesh
                self.checked += 1

    def visit_ImportFrom(self, node):
        if not node.module.startswith("polar_mesh") or (source := module(node.module)) is None:
            return
        for one in node.names:
            name = f"{node.module}.{one.name}"
            self.known[one.name] = module(name) if _is_module(name) else getattr(source, one.name)
            self.checked += 1

    def visit_Attribute(self, node):
        self.generic_visit(node)
        self.resolved(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        called = self.resolved(node.func)
        if called is None or not callable(called):
            return
        arguments = [object()] * len(node.args)
        named = {one.arg: object() for one in node.keywords if one.arg}
        if inspect.isfunction(called) and isinstance(node.func, ast.Attribute) and self.is_method(node.func):
            arguments.insert(0, object())
        if not any(isinstance(one, ast.Constant) and one.value is ... for one in node.args):
            inspect.signature(called).bind(*arguments, **named)
            self.checked += 1

    def is_method(self, node: ast.Attribute) -> bool:
        return inspect.isclass(self.resolved(node.value))

    def resolved(self, node):
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if not isinstance(node, ast.Attribute) or (owner := self.resolved(node.value)) is None:
            return None
        if inspect.ismodule(owner) and _is_module(f"{owner.__name__}.{node.attr}"):
            return module(f"{owner.__name__}.{node.attr}")
        if inspect.isclass(owner) and node.attr not in dir(owner):
            # What only its instances have.
            assert re.search(rf"self\.{node.attr}\b", inspect.getsource(owner)), f"{owner.__name__} has no {node.attr}"
            return None
        self.checked += 1
        return getattr(owner, node.attr)


def _is_module(name: str) -> bool:
    path = SOURCE / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def check(text: str) -> int:
    reader = Reader()
    reader.visit(compile(text, "document", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    return reader.checked


@pytest.mark.parametrize("text", blocks())
def test_what_a_block_names_is_there(text):
    check(text)


def test_blocks_are_found_and_most_name_something():
    assert len(DOCUMENTS) > 10
    assert sum(check(one.values[0]) for one in blocks()) > 40


@pytest.mark.parametrize(
    "text",
    [
        "client.streams('trainer')",
        "client.stream('trainer', credit=3)",
        "batch.acknowledge()",
        "from polar_mesh import Streams",
        "from polar_mesh import rewards\nrewards.samples(groups, baseline='x')",
        "import polar_mesh.tensors",
        "print(batch.version)",
    ],
)
def test_what_is_not_there_is_found(text):
    with pytest.raises((AssertionError, TypeError, ImportError, AttributeError)):
        check(text)


class Whole(Trajectories):
    """All that the documents call, and what they told it."""

    def __init__(self) -> None:
        super().__init__([batch(one) for one in range(1, BATCHES + 1)])
        self.rollout, self.policies = External(sessions=8, lost=()), Policies()
        self.evaluations = Evaluations()
        self.policies.version_min = 1

    def register(self, server) -> None:
        for service in (super(), self.rollout, self.policies, self.evaluations):
            service.register(server)


async def step(_batch) -> None:
    """Nothing that takes time."""


def names(url: str) -> dict[str, object]:
    """What the documents leave to the trainer."""
    client = polar_mesh.Client(url, url)
    batches = [client.stream("other").next(10)]
    return {
        "client": client,
        "task": {"task_id": "t", "instruction": "add"},
        "batches": batches,
        "groups": [one.trajectories for one in batches],
        "step": step,
        "run_agent": lambda _instruction, base_url, api_key: "a kind word",
        "load": lambda _checkpoint: None,
        "save": lambda: "checkpoint",
        "optimizer_step": lambda _batch: None,
        "train": lambda _batch: None,
    }


# Those that are whole; test:trainers has those that need torch.
RUN_HERE = [one for one in blocks() if can_run(one.values[0]) and not needs_torch(one.values[0])]


@pytest.mark.parametrize("text", RUN_HERE)
def test_a_block_runs(text, stack, tmp_path, monkeypatch):
    if "parquet" in text:
        pytest.importorskip("pyarrow")
    if "harbor" in text and sys.version_info < (3, 11):
        pytest.skip("tomllib")
    exports = "export(" in text
    service = Mesh(tasks=1) if exports else Whole()
    server = Server(service.register)
    stack.callback(server.stop)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.sh").write_text("true")
    shutil.copytree(ROOT / "examples/harbor/greeting", tmp_path / "greeting")
    with everywhere(server.url, monkeypatch):
        known = names(server.url)
        stack.callback(known["client"].close)
        run(text.replace('"sum-1"', '"t0"') if exports else text, known)
    if "ack(" in text:
        assert service.acked == {1, 2}
    if "submit(" in text:
        assert service.rollout.calls == 1
    if "paused(" in text:
        assert (2, "") in service.policies.told
    if exports:
        assert json.loads((tmp_path / "out/export.json").read_text())["parts"][0]["groups"] == ["t0/g0"]


def test_the_fields_of_a_task_are_there():
    table = (ROOT / "clients/python/README.md").read_text().split("| task file | task |")[1].split("\n\n")[0]
    fields = [one for row in table.splitlines()[2:] for one in re.findall(r"`([a-z_]+\.[a-z_.]+)`", row.split("|")[2])]
    assert len(fields) > 10
    for field in fields:
        message = TaskSpec.DESCRIPTOR
        *outer, last = field.split(".")
        for name in outer:
            message = message.fields_by_name[name].message_type
        assert last in message.fields_by_name, field


def test_most_blocks_run():
    texts = [one.values[0] for one in blocks()]
    assert len([text for text in texts if not can_run(text)]) == 2
    assert len([text for text in texts if needs_torch(text)]) == 2
