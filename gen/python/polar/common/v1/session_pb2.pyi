from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import network_pb2 as _network_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATE_UNSPECIFIED: _ClassVar[SessionState]
    SESSION_STATE_QUEUED: _ClassVar[SessionState]
    SESSION_STATE_PREPARING: _ClassVar[SessionState]
    SESSION_STATE_READY: _ClassVar[SessionState]
    SESSION_STATE_RUNNING: _ClassVar[SessionState]
    SESSION_STATE_FINISHING: _ClassVar[SessionState]
    SESSION_STATE_ENDED: _ClassVar[SessionState]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_COMPLETED: _ClassVar[Outcome]
    OUTCOME_TIMEOUT: _ClassVar[Outcome]
    OUTCOME_HARNESS_ERROR: _ClassVar[Outcome]
    OUTCOME_INFRASTRUCTURE_ERROR: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
    OUTCOME_TASK_ERROR: _ClassVar[Outcome]
SESSION_STATE_UNSPECIFIED: SessionState
SESSION_STATE_QUEUED: SessionState
SESSION_STATE_PREPARING: SessionState
SESSION_STATE_READY: SessionState
SESSION_STATE_RUNNING: SessionState
SESSION_STATE_FINISHING: SessionState
SESSION_STATE_ENDED: SessionState
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_COMPLETED: Outcome
OUTCOME_TIMEOUT: Outcome
OUTCOME_HARNESS_ERROR: Outcome
OUTCOME_INFRASTRUCTURE_ERROR: Outcome
OUTCOME_CANCELLED: Outcome
OUTCOME_TASK_ERROR: Outcome

class SessionStats(_message.Message):
    __slots__ = ("calls", "traces", "trained_tokens", "masked_tokens", "sampled_tokens", "context_tokens", "usage_mismatches", "experts_dropped")
    class MaskedTokensEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class ExpertsDroppedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CALLS_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    TRAINED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MASKED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    USAGE_MISMATCHES_FIELD_NUMBER: _ClassVar[int]
    EXPERTS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    calls: int
    traces: int
    trained_tokens: int
    masked_tokens: _containers.ScalarMap[str, int]
    sampled_tokens: int
    context_tokens: int
    usage_mismatches: int
    experts_dropped: _containers.ScalarMap[str, int]
    def __init__(self, calls: _Optional[int] = ..., traces: _Optional[int] = ..., trained_tokens: _Optional[int] = ..., masked_tokens: _Optional[_Mapping[str, int]] = ..., sampled_tokens: _Optional[int] = ..., context_tokens: _Optional[int] = ..., usage_mismatches: _Optional[int] = ..., experts_dropped: _Optional[_Mapping[str, int]] = ...) -> None: ...

class StageTimes(_message.Message):
    __slots__ = ("queue_ms", "prepare_ms", "ready_ms", "run_ms", "build_ms", "evaluate_ms", "total_ms")
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    PREPARE_MS_FIELD_NUMBER: _ClassVar[int]
    READY_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    BUILD_MS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_MS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    queue_ms: int
    prepare_ms: int
    ready_ms: int
    run_ms: int
    build_ms: int
    evaluate_ms: int
    total_ms: int
    def __init__(self, queue_ms: _Optional[int] = ..., prepare_ms: _Optional[int] = ..., ready_ms: _Optional[int] = ..., run_ms: _Optional[int] = ..., build_ms: _Optional[int] = ..., evaluate_ms: _Optional[int] = ..., total_ms: _Optional[int] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("attempt", "node_id", "failure", "start_time", "end_time", "times", "denied")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    node_id: str
    failure: _failure_pb2.Failure
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    times: StageTimes
    denied: _network_pb2.DeniedConnections
    def __init__(self, attempt: _Optional[int] = ..., node_id: _Optional[str] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., times: _Optional[_Union[StageTimes, _Mapping]] = ..., denied: _Optional[_Union[_network_pb2.DeniedConnections, _Mapping]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("session_id", "task_id", "group_id", "sample_index", "state", "outcome", "attempt", "node_id", "failure", "reward", "stats", "times", "attempts", "create_time", "end_time", "harness")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    HARNESS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    task_id: str
    group_id: str
    sample_index: int
    state: SessionState
    outcome: Outcome
    attempt: int
    node_id: str
    failure: _failure_pb2.Failure
    reward: float
    stats: SessionStats
    times: StageTimes
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    harness: str
    def __init__(self, session_id: _Optional[str] = ..., task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., sample_index: _Optional[int] = ..., state: _Optional[_Union[SessionState, str]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., attempt: _Optional[int] = ..., node_id: _Optional[str] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reward: _Optional[float] = ..., stats: _Optional[_Union[SessionStats, _Mapping]] = ..., times: _Optional[_Union[StageTimes, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., harness: _Optional[str] = ...) -> None: ...
