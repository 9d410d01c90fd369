from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CloseSessionRequest(_message.Message):
    __slots__ = ("session_id", "attempt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ("calls", "first_seq", "last_seq", "last_failure")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
    calls: int
    first_seq: int
    last_seq: int
    last_failure: _failure_pb2.Failure
    def __init__(self, calls: _Optional[int] = ..., first_seq: _Optional[int] = ..., last_seq: _Optional[int] = ..., last_failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class ListEnginesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListEnginesResponse(_message.Message):
    __slots__ = ("engines",)
    ENGINES_FIELD_NUMBER: _ClassVar[int]
    engines: _containers.RepeatedCompositeFieldContainer[Engine]
    def __init__(self, engines: _Optional[_Iterable[_Union[Engine, _Mapping]]] = ...) -> None: ...

class Engine(_message.Message):
    __slots__ = ("kind", "base_url", "model", "healthy", "problem")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    kind: str
    base_url: str
    model: str
    healthy: bool
    problem: str
    def __init__(self, kind: _Optional[str] = ..., base_url: _Optional[str] = ..., model: _Optional[str] = ..., healthy: bool = ..., problem: _Optional[str] = ...) -> None: ...
