"""Free-form parts of messages: JSON values in a protobuf Struct, whose numbers are all doubles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from .errors import FieldFault

#: From here on, several integers are the same double.
WHOLE_MAX = 2**53
#: Levels of mappings and lists in one part that the mesh takes, ``FREE_FORM_LEVELS_MAX``; protobuf reads few more.
LEVELS_MAX = 30


def is_within(value: Any, levels: int = LEVELS_MAX) -> bool:
    """Whether it has at most so many levels of mappings and lists."""
    if not isinstance(value, (Mapping, list)):
        return True
    inner = value.values() if isinstance(value, Mapping) else value
    return levels > 0 and all(is_within(one, levels - 1) for one in inner)


def inexact(value: Any, path: str) -> Iterator[FieldFault]:
    """The integers in it that would come back as others, by their place."""
    if isinstance(value, int) and abs(value) > WHOLE_MAX:
        yield FieldFault(path, f"{value} is beyond 2**53, where numbers of JSON are not exact: give it as a string")
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from inexact(one, f"{path}.{key}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from inexact(one, f"{path}[{index}]")


def read_struct(message: Struct) -> Mapping[str, Any]:
    """Its values. A number that is whole is an int, whatever was given: a Struct does not tell 3 from 3.0."""
    return _whole(json_format.MessageToDict(message)) if message.fields else {}


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= WHOLE_MAX else value
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value
