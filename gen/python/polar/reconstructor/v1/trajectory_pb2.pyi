from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DriftKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DRIFT_KIND_UNSPECIFIED: _ClassVar[DriftKind]
    DRIFT_KIND_RETOKENISED: _ClassVar[DriftKind]
    DRIFT_KIND_REWRITTEN: _ClassVar[DriftKind]
DRIFT_KIND_UNSPECIFIED: DriftKind
DRIFT_KIND_RETOKENISED: DriftKind
DRIFT_KIND_REWRITTEN: DriftKind

class TrajectoryBatch(_message.Message):
    __slots__ = ("batch_id", "task_id", "group_id", "trajectories", "redelivered", "ready_time", "metadata", "policy_version", "delivery_count", "dropped_reason", "nack_count", "nack_reason", "carried_over_sessions", "columns", "details")
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    REDELIVERED_FIELD_NUMBER: _ClassVar[int]
    READY_TIME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_COUNT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_REASON_FIELD_NUMBER: _ClassVar[int]
    NACK_COUNT_FIELD_NUMBER: _ClassVar[int]
    NACK_REASON_FIELD_NUMBER: _ClassVar[int]
    CARRIED_OVER_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    batch_id: int
    task_id: str
    group_id: str
    trajectories: _containers.RepeatedCompositeFieldContainer[Trajectory]
    redelivered: bool
    ready_time: _timestamp_pb2.Timestamp
    metadata: _struct_pb2.Struct
    policy_version: int
    delivery_count: int
    dropped_reason: str
    nack_count: int
    nack_reason: str
    carried_over_sessions: int
    columns: BatchColumns
    details: BatchDetails
    def __init__(self, batch_id: _Optional[int] = ..., task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., trajectories: _Optional[_Iterable[_Union[Trajectory, _Mapping]]] = ..., redelivered: bool = ..., ready_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., policy_version: _Optional[int] = ..., delivery_count: _Optional[int] = ..., dropped_reason: _Optional[str] = ..., nack_count: _Optional[int] = ..., nack_reason: _Optional[str] = ..., carried_over_sessions: _Optional[int] = ..., columns: _Optional[_Union[BatchColumns, _Mapping]] = ..., details: _Optional[_Union[BatchDetails, _Mapping]] = ...) -> None: ...

class BatchColumns(_message.Message):
    __slots__ = ("prompt_ids", "response_ids", "loss_mask", "logprobs", "prompt_offsets", "response_offsets", "trajectory_indexes", "rewards", "trajectory_rewards", "policy_versions_min", "policy_versions_max", "outcomes", "dropped_reasons")
    PROMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_IDS_FIELD_NUMBER: _ClassVar[int]
    LOSS_MASK_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_INDEXES_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_REWARDS_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSIONS_MIN_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSIONS_MAX_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_REASONS_FIELD_NUMBER: _ClassVar[int]
    prompt_ids: bytes
    response_ids: bytes
    loss_mask: bytes
    logprobs: bytes
    prompt_offsets: bytes
    response_offsets: bytes
    trajectory_indexes: bytes
    rewards: bytes
    trajectory_rewards: bytes
    policy_versions_min: bytes
    policy_versions_max: bytes
    outcomes: bytes
    dropped_reasons: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, prompt_ids: _Optional[bytes] = ..., response_ids: _Optional[bytes] = ..., loss_mask: _Optional[bytes] = ..., logprobs: _Optional[bytes] = ..., prompt_offsets: _Optional[bytes] = ..., response_offsets: _Optional[bytes] = ..., trajectory_indexes: _Optional[bytes] = ..., rewards: _Optional[bytes] = ..., trajectory_rewards: _Optional[bytes] = ..., policy_versions_min: _Optional[bytes] = ..., policy_versions_max: _Optional[bytes] = ..., outcomes: _Optional[bytes] = ..., dropped_reasons: _Optional[_Iterable[str]] = ...) -> None: ...

class BatchDetails(_message.Message):
    __slots__ = ("trajectories",)
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    trajectories: _containers.RepeatedCompositeFieldContainer[Trajectory]
    def __init__(self, trajectories: _Optional[_Iterable[_Union[Trajectory, _Mapping]]] = ...) -> None: ...

class Trajectory(_message.Message):
    __slots__ = ("session_id", "task_id", "group_id", "sample_index", "attempt", "outcome", "failure", "reward", "traces", "stats", "builder", "policy_version_min", "policy_version_max", "drift", "evaluation", "builder_config", "dropped_reason")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    BUILDER_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    BUILDER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DROPPED_REASON_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    task_id: str
    group_id: str
    sample_index: int
    attempt: int
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    reward: float
    traces: _containers.RepeatedCompositeFieldContainer[Trace]
    stats: _session_pb2.SessionStats
    builder: str
    policy_version_min: int
    policy_version_max: int
    drift: _containers.RepeatedCompositeFieldContainer[Drift]
    evaluation: _struct_pb2.Struct
    builder_config: _struct_pb2.Struct
    dropped_reason: str
    def __init__(self, session_id: _Optional[str] = ..., task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., sample_index: _Optional[int] = ..., attempt: _Optional[int] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reward: _Optional[float] = ..., traces: _Optional[_Iterable[_Union[Trace, _Mapping]]] = ..., stats: _Optional[_Union[_session_pb2.SessionStats, _Mapping]] = ..., builder: _Optional[str] = ..., policy_version_min: _Optional[int] = ..., policy_version_max: _Optional[int] = ..., drift: _Optional[_Iterable[_Union[Drift, _Mapping]]] = ..., evaluation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., builder_config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., dropped_reason: _Optional[str] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("prompt_ids", "response_ids", "loss_mask", "logprobs", "spans", "routed_experts", "images", "reward")
    PROMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_IDS_FIELD_NUMBER: _ClassVar[int]
    LOSS_MASK_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    ROUTED_EXPERTS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    prompt_ids: bytes
    response_ids: bytes
    loss_mask: bytes
    logprobs: bytes
    spans: _containers.RepeatedCompositeFieldContainer[CallSpan]
    routed_experts: TraceExperts
    images: _containers.RepeatedCompositeFieldContainer[TraceImage]
    reward: float
    def __init__(self, prompt_ids: _Optional[bytes] = ..., response_ids: _Optional[bytes] = ..., loss_mask: _Optional[bytes] = ..., logprobs: _Optional[bytes] = ..., spans: _Optional[_Iterable[_Union[CallSpan, _Mapping]]] = ..., routed_experts: _Optional[_Union[TraceExperts, _Mapping]] = ..., images: _Optional[_Iterable[_Union[TraceImage, _Mapping]]] = ..., reward: _Optional[float] = ...) -> None: ...

class TraceImage(_message.Message):
    __slots__ = ("digest", "media_type", "url", "message_digest", "part", "size_bytes")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    digest: str
    media_type: str
    url: str
    message_digest: str
    part: int
    size_bytes: int
    def __init__(self, digest: _Optional[str] = ..., media_type: _Optional[str] = ..., url: _Optional[str] = ..., message_digest: _Optional[str] = ..., part: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class TraceExperts(_message.Message):
    __slots__ = ("rows", "known", "layers", "top_k", "item_bytes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    ITEM_BYTES_FIELD_NUMBER: _ClassVar[int]
    rows: bytes
    known: bytes
    layers: int
    top_k: int
    item_bytes: int
    def __init__(self, rows: _Optional[bytes] = ..., known: _Optional[bytes] = ..., layers: _Optional[int] = ..., top_k: _Optional[int] = ..., item_bytes: _Optional[int] = ...) -> None: ...

class CallSpan(_message.Message):
    __slots__ = ("call_id", "start", "length", "finish_reason", "policy_version", "masked_reason", "policy_runs")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    MASKED_REASON_FIELD_NUMBER: _ClassVar[int]
    POLICY_RUNS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    start: int
    length: int
    finish_reason: str
    policy_version: int
    masked_reason: str
    policy_runs: _containers.RepeatedCompositeFieldContainer[PolicyRun]
    def __init__(self, call_id: _Optional[str] = ..., start: _Optional[int] = ..., length: _Optional[int] = ..., finish_reason: _Optional[str] = ..., policy_version: _Optional[int] = ..., masked_reason: _Optional[str] = ..., policy_runs: _Optional[_Iterable[_Union[PolicyRun, _Mapping]]] = ...) -> None: ...

class PolicyRun(_message.Message):
    __slots__ = ("policy_version", "start", "length")
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    policy_version: int
    start: int
    length: int
    def __init__(self, policy_version: _Optional[int] = ..., start: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class Drift(_message.Message):
    __slots__ = ("call_id", "kind", "first_difference")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIRST_DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    kind: DriftKind
    first_difference: int
    def __init__(self, call_id: _Optional[str] = ..., kind: _Optional[_Union[DriftKind, str]] = ..., first_difference: _Optional[int] = ...) -> None: ...
