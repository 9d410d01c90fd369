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
    __slots__ = ("calls", "first_seq", "last_seq", "last_failure", "began_anew")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
    BEGAN_ANEW_FIELD_NUMBER: _ClassVar[int]
    calls: int
    first_seq: int
    last_seq: int
    last_failure: _failure_pb2.Failure
    began_anew: bool
    def __init__(self, calls: _Optional[int] = ..., first_seq: _Optional[int] = ..., last_seq: _Optional[int] = ..., last_failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., began_anew: bool = ...) -> None: ...

class ListEnginesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListEnginesResponse(_message.Message):
    __slots__ = ("engines", "audit")
    ENGINES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    engines: _containers.RepeatedCompositeFieldContainer[Engine]
    audit: AuditReport
    def __init__(self, engines: _Optional[_Iterable[_Union[Engine, _Mapping]]] = ..., audit: _Optional[_Union[AuditReport, _Mapping]] = ...) -> None: ...

class AuditReport(_message.Message):
    __slots__ = ("checked", "matches", "mismatches", "missed")
    class MismatchesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    MISMATCHES_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    checked: int
    matches: int
    mismatches: _containers.ScalarMap[str, int]
    missed: int
    def __init__(self, checked: _Optional[int] = ..., matches: _Optional[int] = ..., mismatches: _Optional[_Mapping[str, int]] = ..., missed: _Optional[int] = ...) -> None: ...

class DrainEngineRequest(_message.Message):
    __slots__ = ("base_url", "undo")
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    base_url: str
    undo: bool
    def __init__(self, base_url: _Optional[str] = ..., undo: bool = ...) -> None: ...

class DrainEngineResponse(_message.Message):
    __slots__ = ("calls_in_flight",)
    CALLS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    calls_in_flight: int
    def __init__(self, calls_in_flight: _Optional[int] = ...) -> None: ...

class Engine(_message.Message):
    __slots__ = ("kind", "base_url", "model", "healthy", "problem", "pool", "calls_in_flight", "calls_in_flight_max", "sessions", "draining", "features")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    CALLS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CALLS_IN_FLIGHT_MAX_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    base_url: str
    model: str
    healthy: bool
    problem: str
    pool: str
    calls_in_flight: int
    calls_in_flight_max: int
    sessions: int
    draining: bool
    features: EngineFeatures
    def __init__(self, kind: _Optional[str] = ..., base_url: _Optional[str] = ..., model: _Optional[str] = ..., healthy: bool = ..., problem: _Optional[str] = ..., pool: _Optional[str] = ..., calls_in_flight: _Optional[int] = ..., calls_in_flight_max: _Optional[int] = ..., sessions: _Optional[int] = ..., draining: bool = ..., features: _Optional[_Union[EngineFeatures, _Mapping]] = ...) -> None: ...

class EngineFeatures(_message.Message):
    __slots__ = ("whole_ids", "streamed_ids", "prompt_ids", "logprob_mode", "several_choices", "tokenize_path", "token_mode", "weight_versions", "pause_path")
    WHOLE_IDS_FIELD_NUMBER: _ClassVar[int]
    STREAMED_IDS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_MODE_FIELD_NUMBER: _ClassVar[int]
    SEVERAL_CHOICES_FIELD_NUMBER: _ClassVar[int]
    TOKENIZE_PATH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_MODE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_PATH_FIELD_NUMBER: _ClassVar[int]
    whole_ids: bool
    streamed_ids: str
    prompt_ids: str
    logprob_mode: str
    several_choices: bool
    tokenize_path: str
    token_mode: str
    weight_versions: str
    pause_path: str
    def __init__(self, whole_ids: bool = ..., streamed_ids: _Optional[str] = ..., prompt_ids: _Optional[str] = ..., logprob_mode: _Optional[str] = ..., several_choices: bool = ..., tokenize_path: _Optional[str] = ..., token_mode: _Optional[str] = ..., weight_versions: _Optional[str] = ..., pause_path: _Optional[str] = ...) -> None: ...
