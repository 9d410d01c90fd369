from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskFilter(_message.Message):
    __slots__ = ("name_contains", "harness", "state", "outcome")
    NAME_CONTAINS_FIELD_NUMBER: _ClassVar[int]
    HARNESS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    name_contains: str
    harness: str
    state: _session_pb2.SessionState
    outcome: _session_pb2.Outcome
    def __init__(self, name_contains: _Optional[str] = ..., harness: _Optional[str] = ..., state: _Optional[_Union[_session_pb2.SessionState, str]] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ...) -> None: ...
