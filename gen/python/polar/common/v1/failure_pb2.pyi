from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Boundary(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOUNDARY_UNSPECIFIED: _ClassVar[Boundary]
    BOUNDARY_PROVIDER: _ClassVar[Boundary]
    BOUNDARY_HARNESS: _ClassVar[Boundary]
    BOUNDARY_SANDBOX: _ClassVar[Boundary]
    BOUNDARY_PROXY: _ClassVar[Boundary]
    BOUNDARY_TASK: _ClassVar[Boundary]
    BOUNDARY_EVALUATOR: _ClassVar[Boundary]
    BOUNDARY_MESH: _ClassVar[Boundary]
BOUNDARY_UNSPECIFIED: Boundary
BOUNDARY_PROVIDER: Boundary
BOUNDARY_HARNESS: Boundary
BOUNDARY_SANDBOX: Boundary
BOUNDARY_PROXY: Boundary
BOUNDARY_TASK: Boundary
BOUNDARY_EVALUATOR: Boundary
BOUNDARY_MESH: Boundary

class Failure(_message.Message):
    __slots__ = ("boundary", "reason", "message", "infrastructure")
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INFRASTRUCTURE_FIELD_NUMBER: _ClassVar[int]
    boundary: Boundary
    reason: str
    message: str
    infrastructure: bool
    def __init__(self, boundary: _Optional[_Union[Boundary, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., infrastructure: bool = ...) -> None: ...
