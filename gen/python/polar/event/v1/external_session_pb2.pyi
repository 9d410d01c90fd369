from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Opened(_message.Message):
    __slots__ = ("request_sha256", "key_sha256", "lease_ms")
    REQUEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    KEY_SHA256_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    request_sha256: str
    key_sha256: str
    lease_ms: int
    def __init__(self, request_sha256: _Optional[str] = ..., key_sha256: _Optional[str] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class Closed(_message.Message):
    __slots__ = ("outcome", "failure", "reward", "close_ms", "trace_rewards", "trace_rewards_sha256")
    class TraceRewardsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    CLOSE_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_SHA256_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    reward: float
    close_ms: int
    trace_rewards: _containers.ScalarMap[str, float]
    trace_rewards_sha256: str
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reward: _Optional[float] = ..., close_ms: _Optional[int] = ..., trace_rewards: _Optional[_Mapping[str, float]] = ..., trace_rewards_sha256: _Optional[str] = ...) -> None: ...

class CloseWork(_message.Message):
    __slots__ = ("outcome", "failure", "rewarded_calls")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARDED_CALLS_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    rewarded_calls: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., rewarded_calls: _Optional[_Iterable[str]] = ...) -> None: ...
