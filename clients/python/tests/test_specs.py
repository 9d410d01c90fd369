"""Tasks from plain Python values."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce

import numpy as np
import pytest
from google.protobuf import json_format

import polar_mesh
from polar_mesh import errors
from polar_mesh.gen.polar.scheduler.v1.scheduler_service_pb2 import SubmitTaskRequest

FILE = {"target": "/a", "content": "x"}
#: A mapping of mappings, so many levels of them.
DEEP = {levels: reduce(lambda inner, _: {"a": inner}, range(levels), 1) for levels in (30, 31, 5000)}
ITSELF: dict[str, object] = {}
ITSELF["a"] = ITSELF


@pytest.mark.parametrize(
    ("task", "field", "told"),
    [
        ({"harness": {"artifacts": "/a"}}, "harness.artifacts", "must be a list"),
        ({"harness": {"artifacts": ["/a", 5]}}, "harness.artifacts", "must be a string"),
        (
            {"runtime": {"prepare": [{"exec": {"command": "ls"}, "upload_file": FILE}]}},
            "runtime.prepare[0].upload_file",
            "there is exec beside it",
        ),
        ({"runtime": {"env": {"A": 1}}}, "runtime.env", "must be a string"),
        ({"runtime": {"env": ["A=1"]}}, "runtime.env", "must be a mapping"),
        ({"metadata": {"loss": [float("nan")]}}, "metadata", "not JSON compliant"),
        ({"metadata": {"row": 2**53 + 1}}, "metadata.row", "9007199254740993 is beyond"),
        ({"metadata": {"rows": [[0, np.uint64(2**64 - 1)]]}}, "metadata.rows[0][1]", "18446744073709551615 is beyond"),
        ({"harness": {"settings": {"seed": -(2**60)}}}, "harness.settings.seed", "-1152921504606846976 is beyond"),
        ({"metadata": {"at": timedelta()}}, "metadata", "timedelta is not JSON"),
        ({"harness": {"settings": DEEP[31]}}, "harness.settings", "more than 30 levels"),
        ({"metadata": DEEP[5000]}, "metadata", "more than 30 levels"),
        ({"metadata": ITSELF}, "metadata", "more than 30 levels"),
        ({"runtime": {"prepare": ITSELF}}, "runtime", "more than 30 levels"),
        ({"num_samples": 0}, "num_samples", "must be at least 1"),
        ({"max_attempts": np.int64(0)}, "max_attempts", "must be at least 1"),
        (
            {"runtime": {"prepare": [{"exec": {"command": "ls", "max_attempts": 0}}]}},
            "runtime.prepare[0].exec.max_attempts",
            "must be at least 1",
        ),
        ({"harness": {"skills": [{**FILE, "mode": 0}]}}, "harness.skills[0].mode", "leave it out for the default"),
        ({"sampling": {"temperature": float("inf")}}, "sampling.temperature", "must be a finite number"),
    ],
)
def test_what_would_be_dropped_or_misread_is_a_fault(task, field, told):
    with pytest.raises(errors.InvalidArgument, match=told) as caught:
        polar_mesh.task_spec(task)
    assert [fault.field for fault in caught.value.fields] == [field]


@pytest.mark.parametrize(
    ("task", "field", "here"),
    [
        ({"timeout_seconds": 60}, "timeout_seconds", "budgets.run"),
        ({"budgets": {"prepare_seconds": 60}}, "budgets.prepare_seconds", "budgets.prepare"),
        ({"agent": {"harness": "pi"}}, "agent", "harness"),
        ({"harness": {"custom_shell": {}}}, "harness.custom_shell", "harness.command"),
        ({"runtime": {"prepare": [{"type": "exec"}]}}, "runtime.prepare[0].type", "the step's only key"),
    ],
)
def test_a_key_of_task_files_is_told_by_what_it_is_here(task, field, here):
    with pytest.raises(errors.InvalidArgument) as caught:
        polar_mesh.task_spec(task)
    (fault,) = caught.value.fields
    assert fault.field == field
    assert f"what task files have there is {here}" in fault.description


def test_numbers_of_which_0_is_one_may_be_0():
    task = {"dispatch_priority": 0, "max_running_sessions": 0, "runtime": {"gpus": 0}, "sampling": {"seed_base": 0}}
    assert polar_mesh.task_spec(task).sampling.HasField("seed_base")


def test_numbers_of_numpy_are_numbers():
    task = {
        "num_samples": np.int64(4),
        "budgets": {"run": np.float32(1.5)},
        "metadata": {"row": np.int32(7), "scores": np.array([0.5, 1.0]), "tags": ("a", np.bool_(True))},
    }
    spec = polar_mesh.task_spec(task)
    assert (spec.num_samples, spec.budgets.run.ToMilliseconds()) == (4, 1500)
    assert json_format.MessageToDict(spec.metadata) == {"row": 7.0, "scores": [0.5, 1.0], "tags": ["a", True]}


def test_free_form_values_of_another_task_are_taken_as_they_are():
    metadata = {"tags": ["a", ["b"]], "of": {"scores": [1.0]}}
    other = polar_mesh.task_spec({"metadata": metadata}).metadata
    for given in (other, {"tags": other["tags"], "of": other["of"]}):
        assert json_format.MessageToDict(polar_mesh.task_spec({"metadata": given}).metadata) == metadata


def test_as_many_levels_as_the_mesh_takes_can_be_sent():
    request = SubmitTaskRequest(spec=polar_mesh.task_spec({"metadata": DEEP[30], "harness": {"settings": DEEP[30]}}))
    assert json_format.MessageToDict(request.spec.metadata) == DEEP[30]


@pytest.mark.parametrize("task", [None, "task.yaml", [{}]])
def test_what_is_no_task_is_named(task):
    with pytest.raises(errors.InvalidArgument, match="task: must be a mapping"):
        polar_mesh.task_spec(task)
