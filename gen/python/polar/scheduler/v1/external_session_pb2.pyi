from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenSessionRequest(_message.Message):
    __slots__ = ("task_id", "request_id", "lease")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    request_id: str
    lease: _duration_pb2.Duration
    def __init__(self, task_id: _Optional[str] = ..., request_id: _Optional[str] = ..., lease: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class OpenSessionResponse(_message.Message):
    __slots__ = ("session", "api_key", "openai_url", "base_url", "expire_time", "env", "instruction")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    OPENAI_URL_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    api_key: str
    openai_url: str
    base_url: str
    expire_time: _timestamp_pb2.Timestamp
    env: _containers.ScalarMap[str, str]
    instruction: str
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., api_key: _Optional[str] = ..., openai_url: _Optional[str] = ..., base_url: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., env: _Optional[_Mapping[str, str]] = ..., instruction: _Optional[str] = ...) -> None: ...

class RenewSessionRequest(_message.Message):
    __slots__ = ("session_id", "attempt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class RenewSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("session_id", "attempt", "outcome", "reward", "message", "trace_rewards")
    class TraceRewardsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    outcome: _session_pb2.Outcome
    reward: float
    message: str
    trace_rewards: _containers.ScalarMap[str, float]
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., reward: _Optional[float] = ..., message: _Optional[str] = ..., trace_rewards: _Optional[_Mapping[str, float]] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...
