"""A task from plain Python values, with all faults at once."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct

from .errors import FieldFault, InvalidArgument
from .free_form import LEVELS_MAX, inexact, is_within
from .gen.polar.common.v1.task_pb2 import TaskSpec


#: Numbers of which the mesh takes 0 for one that was left out.
_NEVER_0 = {
    "polar.common.v1.TaskSpec.num_samples",
    "polar.common.v1.TaskSpec.max_attempts",
    "polar.common.v1.ExecStep.max_attempts",
    "polar.common.v1.UploadFile.mode",
}


def task_spec(task: Mapping[str, Any]) -> TaskSpec:
    """A TaskSpec from a mapping with the proto's field names.

    Spans of time are seconds (int or float) or timedelta; file contents are bytes, or str for UTF-8 text; free-form
    parts (``metadata``, ``settings``, ``config``) are mappings of JSON values, of which the mesh takes 30 levels.
    Numbers and arrays may be numpy's. The mesh keeps numbers of free-form parts as doubles: integers beyond 2**53 are
    refused, and 3.0 comes back as 3 with a batch. A TaskSpec has all of them as float.

    Raises:
        InvalidArgument: reason INVALID_TASK, with every key that there is not and every value that does not fit.
    """
    faults: list[FieldFault] = []
    spec = _read(task, "", faults)
    if faults:
        raise _refused("the task", faults)
    return spec


def task_specs(tasks: Sequence[Mapping[str, Any] | TaskSpec]) -> list[TaskSpec]:
    """The same of several, where the fields of faults begin with ``tasks[i].spec``, as the mesh has it."""
    faults: list[FieldFault] = []
    specs = [
        task if isinstance(task, TaskSpec) else _read(task, f"tasks[{index}].spec", faults)
        for index, task in enumerate(tasks)
    ]
    if faults:
        raise _refused("the batch", faults)
    return specs


def _read(task: Any, path: str, faults: list[FieldFault]) -> TaskSpec:
    spec = TaskSpec()
    _fill(spec, task, path, faults)
    return spec


def _refused(what: str, faults: Sequence[FieldFault]) -> InvalidArgument:
    return InvalidArgument(
        f"{what} is not valid",
        code="INVALID_ARGUMENT",
        reason="INVALID_TASK",
        boundary="task",
        fields=tuple(faults),
    )


def _fill(message: Message, values: Any, path: str, faults: list[FieldFault]) -> None:
    if not isinstance(values, Mapping):
        faults.append(FieldFault(path or "task", f"must be a mapping, not {type(values).__name__}"))
        return
    for key, value in values.items():
        field_path = f"{path}.{key}" if path else str(key)
        field = message.DESCRIPTOR.fields_by_name.get(key)
        if field is None:
            faults.append(FieldFault(field_path, _unknown(message.DESCRIPTOR, str(key))))
        elif value is not None:
            # Protobuf would keep the last one, and not say so.
            if (other := _alternative(message, field)) is not None:
                faults.append(FieldFault(field_path, f"there is {other} beside it, and only one of them goes"))
            _set(message, field, value, field_path, faults)


_TOO_DEEP = f"it has more than {LEVELS_MAX} levels of mappings and lists"


def _set(message: Message, field: FieldDescriptor, value: Any, path: str, faults: list[FieldFault]) -> None:
    target = getattr(message, field.name)
    try:
        value = _plain(value)
        if field.message_type is None and hasattr(target, "extend"):
            target.extend([_scalar(field, one) for one in _items(value)])
        elif field.message_type is None:
            setattr(message, field.name, _scalar(field, value))
            if field.full_name in _NEVER_0 and getattr(message, field.name) == 0:
                raise ValueError("it must be at least 1; leave it out for the default")
        elif field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name
            entries = _entries(value).items()
            target.update({_scalar(of["key"], key): _scalar(of["value"], one) for key, one in entries})
        elif isinstance(target, Struct):
            if not is_within(value):
                raise ValueError(_TOO_DEEP)
            json.dumps(value, allow_nan=False)  # What JSON does not have, the mesh cannot tell again.
            faults.extend(inexact(value, path))
            target.update(_entries(value))
            target.SetInParent()
        elif isinstance(target, Duration):
            _set_duration(target, value)
        elif isinstance(target, Message):
            target.SetInParent()
            _fill(target, value, path, faults)
        else:
            for index, item in enumerate(_items(value)):
                _fill(target.add(), item, f"{path}[{index}]", faults)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        faults.append(FieldFault(path, f"does not take this {type(value).__name__}: {error}"))


def _alternative(message: Message, field: FieldDescriptor) -> str | None:
    """Another field that is set, of which there is only one."""
    return field.containing_oneof and message.WhichOneof(field.containing_oneof.name)


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return value
    raise TypeError("it must be a list")


def _entries(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    raise TypeError("it must be a mapping")


def _set_duration(target: Duration, value: Any) -> None:
    if isinstance(value, (int, float)):
        value = timedelta(seconds=value)
    if not isinstance(value, timedelta):
        raise TypeError("it must be seconds or a timedelta")
    target.FromTimedelta(value)
    target.SetInParent()


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES and isinstance(value, str):
        return value.encode()
    if field.type == FieldDescriptor.TYPE_STRING and not isinstance(value, str):
        raise TypeError("it must be a string")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it must be a finite number")
    return value


#: Of a whole task: a free-form value and the messages that it lies in.
_LEVELS_MAX = LEVELS_MAX + 10


def _plain(value: Any, levels: int = _LEVELS_MAX) -> Any:
    """The same with numpy's numbers and arrays, and protobuf's free-form values, as Python's own. One may hold itself."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))
    if not is_list and not isinstance(value, Mapping):
        return value
    if levels == 0:
        raise ValueError(_TOO_DEEP)
    if is_list:
        return [_plain(one, levels - 1) for one in value]
    return {key: _plain(one, levels - 1) for key, one in value.items()}


#: What keys of task files, which have the same form in YAML, are in a task; some of one message alone.
_OF_TASK_FILES = {
    "agent": "harness, with harness.name and harness.command",
    "timeout_seconds": "budgets.run",
    "prepare_seconds": "budgets.prepare",
    "build_seconds": "budgets.build",
    "evaluate_seconds": "budgets.evaluate",
    "ready_seconds": "budgets.ready",
    "queue_seconds": "budgets.queue",
    "custom_shell": "harness.command",
    "skills_path": "harness.skills",
    "early_stop_min_usable_sessions": "early_stop.min_usable_sessions",
    "early_stop_grace_seconds": "early_stop.grace",
    "early_stop_stragglers": "early_stop.stragglers",
    "PrepareStep.type": "the step's only key: exec, upload_file or upload_dir",
}


def _unknown(descriptor: Descriptor, key: str) -> str:
    here = _OF_TASK_FILES.get(key) or _OF_TASK_FILES.get(f"{descriptor.name}.{key}")
    if here is not None:
        return f"there is no such field: what task files have there is {here}"
    close = difflib.get_close_matches(key, descriptor.fields_by_name, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(descriptor.fields_by_name)}"
    return f"there is no such field{hint}"
