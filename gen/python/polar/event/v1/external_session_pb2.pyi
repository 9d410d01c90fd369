from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Opened(_message.Message):
    __slots__ = ("request_sha256", "key_sha256")
    REQUEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    KEY_SHA256_FIELD_NUMBER: _ClassVar[int]
    request_sha256: str
    key_sha256: str
    def __init__(self, request_sha256: _Optional[str] = ..., key_sha256: _Optional[str] = ...) -> None: ...

class Closed(_message.Message):
    __slots__ = ("outcome", "failure", "reward", "close_ms")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    CLOSE_MS_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    reward: float
    close_ms: int
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reward: _Optional[float] = ..., close_ms: _Optional[int] = ...) -> None: ...

class CloseWork(_message.Message):
    __slots__ = ("outcome", "failure")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...
