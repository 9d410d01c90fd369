from google.protobuf import struct_pb2 as _struct_pb2
from polar_mesh.gen.polar.common.v1 import blob_pb2 as _blob_pb2
from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import network_pb2 as _network_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from polar_mesh.gen.polar.common.v1 import task_pb2 as _task_pb2
from polar_mesh.gen.polar.event.v1 import external_session_pb2 as _external_session_pb2
from polar_mesh.gen.polar.event.v1 import graded_pb2 as _graded_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttemptRef(_message.Message):
    __slots__ = ("session_id", "attempt", "node_id", "boot_id", "task_id", "sample_index")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    node_id: str
    boot_id: str
    task_id: str
    sample_index: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., node_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., task_id: _Optional[str] = ..., sample_index: _Optional[int] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("ref", "prepare", "run", "build", "evaluate", "close")
    REF_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    ref: AttemptRef
    prepare: PrepareWork
    run: RunWork
    build: BuildWork
    evaluate: EvaluateWork
    close: _external_session_pb2.CloseWork
    def __init__(self, ref: _Optional[_Union[AttemptRef, _Mapping]] = ..., prepare: _Optional[_Union[PrepareWork, _Mapping]] = ..., run: _Optional[_Union[RunWork, _Mapping]] = ..., build: _Optional[_Union[BuildWork, _Mapping]] = ..., evaluate: _Optional[_Union[EvaluateWork, _Mapping]] = ..., close: _Optional[_Union[_external_session_pb2.CloseWork, _Mapping]] = ...) -> None: ...

class PrepareWork(_message.Message):
    __slots__ = ("runtime", "timeout_ms", "lease_ms", "evaluate_timeout_ms")
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    runtime: _task_pb2.RuntimeSpec
    timeout_ms: int
    lease_ms: int
    evaluate_timeout_ms: int
    def __init__(self, runtime: _Optional[_Union[_task_pb2.RuntimeSpec, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., evaluate_timeout_ms: _Optional[int] = ...) -> None: ...

class RunWork(_message.Message):
    __slots__ = ("runtime_id", "instruction", "harness", "sampling", "timeout_ms", "proxy_url")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    HARNESS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PROXY_URL_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    instruction: str
    harness: _task_pb2.HarnessSpec
    sampling: _task_pb2.Sampling
    timeout_ms: int
    proxy_url: str
    def __init__(self, runtime_id: _Optional[str] = ..., instruction: _Optional[str] = ..., harness: _Optional[_Union[_task_pb2.HarnessSpec, _Mapping]] = ..., sampling: _Optional[_Union[_task_pb2.Sampling, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., proxy_url: _Optional[str] = ...) -> None: ...

class BuildWork(_message.Message):
    __slots__ = ("builder", "calls", "timeout_ms")
    BUILDER_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    builder: _task_pb2.StrategySpec
    calls: CallRange
    timeout_ms: int
    def __init__(self, builder: _Optional[_Union[_task_pb2.StrategySpec, _Mapping]] = ..., calls: _Optional[_Union[CallRange, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class EvaluateWork(_message.Message):
    __slots__ = ("runtime_id", "evaluator", "runtime", "outcome", "timeout_ms", "calls", "instruction", "metadata")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    evaluator: _task_pb2.EvaluatorSpec
    runtime: _task_pb2.RuntimeSpec
    outcome: _session_pb2.Outcome
    timeout_ms: int
    calls: CallRange
    instruction: str
    metadata: _struct_pb2.Struct
    def __init__(self, runtime_id: _Optional[str] = ..., evaluator: _Optional[_Union[_task_pb2.EvaluatorSpec, _Mapping]] = ..., runtime: _Optional[_Union[_task_pb2.RuntimeSpec, _Mapping]] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., timeout_ms: _Optional[int] = ..., calls: _Optional[_Union[CallRange, _Mapping]] = ..., instruction: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class CallRange(_message.Message):
    __slots__ = ("calls", "first_seq", "last_seq")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    calls: int
    first_seq: int
    last_seq: int
    def __init__(self, calls: _Optional[int] = ..., first_seq: _Optional[int] = ..., last_seq: _Optional[int] = ...) -> None: ...

class Fact(_message.Message):
    __slots__ = ("ref", "duration_ms", "ready", "ran", "built", "evaluated", "failed", "installing", "installed", "denied")
    REF_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RAN_FIELD_NUMBER: _ClassVar[int]
    BUILT_FIELD_NUMBER: _ClassVar[int]
    EVALUATED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    INSTALLING_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    ref: AttemptRef
    duration_ms: int
    ready: Ready
    ran: Ran
    built: Built
    evaluated: Evaluated
    failed: Failed
    installing: Installing
    installed: Installed
    denied: _network_pb2.DeniedConnections
    def __init__(self, ref: _Optional[_Union[AttemptRef, _Mapping]] = ..., duration_ms: _Optional[int] = ..., ready: _Optional[_Union[Ready, _Mapping]] = ..., ran: _Optional[_Union[Ran, _Mapping]] = ..., built: _Optional[_Union[Built, _Mapping]] = ..., evaluated: _Optional[_Union[Evaluated, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., installing: _Optional[_Union[Installing, _Mapping]] = ..., installed: _Optional[_Union[Installed, _Mapping]] = ..., denied: _Optional[_Union[_network_pb2.DeniedConnections, _Mapping]] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("runtime_id", "proxy_url")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    PROXY_URL_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    proxy_url: str
    def __init__(self, runtime_id: _Optional[str] = ..., proxy_url: _Optional[str] = ...) -> None: ...

class Installing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Installed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Ran(_message.Message):
    __slots__ = ("outcome", "failure", "exit_code", "calls", "rewards_failure")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FAILURE_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    exit_code: int
    calls: CallRange
    rewards_failure: _failure_pb2.Failure
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., exit_code: _Optional[int] = ..., calls: _Optional[_Union[CallRange, _Mapping]] = ..., rewards_failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class Built(_message.Message):
    __slots__ = ("trajectory", "stats", "policy_version_min", "policy_version_max")
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    trajectory: _blob_pb2.BlobRef
    stats: _session_pb2.SessionStats
    policy_version_min: int
    policy_version_max: int
    def __init__(self, trajectory: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ..., stats: _Optional[_Union[_session_pb2.SessionStats, _Mapping]] = ..., policy_version_min: _Optional[int] = ..., policy_version_max: _Optional[int] = ...) -> None: ...

class Evaluated(_message.Message):
    __slots__ = ("reward", "evaluation", "trace_rewards", "changes")
    REWARD_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    reward: float
    evaluation: _struct_pb2.Struct
    trace_rewards: _containers.RepeatedCompositeFieldContainer[TraceReward]
    changes: _blob_pb2.BlobRef
    def __init__(self, reward: _Optional[float] = ..., evaluation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., trace_rewards: _Optional[_Iterable[_Union[TraceReward, _Mapping]]] = ..., changes: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ...) -> None: ...

class TraceReward(_message.Message):
    __slots__ = ("call_id", "reward")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    reward: float
    def __init__(self, call_id: _Optional[str] = ..., reward: _Optional[float] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("failure", "stage", "changes")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    failure: _failure_pb2.Failure
    stage: str
    changes: _blob_pb2.BlobRef
    def __init__(self, failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., stage: _Optional[str] = ..., changes: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("node_id", "boot_id", "backends", "default_backend", "prepare_slots", "run_slots", "evaluate_slots", "attempts", "ready_slots", "offers", "data_id", "leaving", "proxy_url", "gpus")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BACKEND_FIELD_NUMBER: _ClassVar[int]
    PREPARE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    RUN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    READY_SLOTS_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    DATA_ID_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    PROXY_URL_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    boot_id: str
    backends: _containers.RepeatedScalarFieldContainer[str]
    default_backend: str
    prepare_slots: int
    run_slots: int
    evaluate_slots: int
    attempts: _containers.RepeatedCompositeFieldContainer[AttemptRef]
    ready_slots: int
    offers: _containers.RepeatedCompositeFieldContainer[Offer]
    data_id: str
    leaving: bool
    proxy_url: str
    gpus: int
    def __init__(self, node_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., backends: _Optional[_Iterable[str]] = ..., default_backend: _Optional[str] = ..., prepare_slots: _Optional[int] = ..., run_slots: _Optional[int] = ..., evaluate_slots: _Optional[int] = ..., attempts: _Optional[_Iterable[_Union[AttemptRef, _Mapping]]] = ..., ready_slots: _Optional[int] = ..., offers: _Optional[_Iterable[_Union[Offer, _Mapping]]] = ..., data_id: _Optional[str] = ..., leaving: bool = ..., proxy_url: _Optional[str] = ..., gpus: _Optional[int] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("backend", "images", "others", "gpus_claimed", "gpus_from_creation")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    GPUS_CLAIMED_FIELD_NUMBER: _ClassVar[int]
    GPUS_FROM_CREATION_FIELD_NUMBER: _ClassVar[int]
    backend: str
    images: _containers.RepeatedScalarFieldContainer[str]
    others: bool
    gpus_claimed: bool
    gpus_from_creation: bool
    def __init__(self, backend: _Optional[str] = ..., images: _Optional[_Iterable[str]] = ..., others: bool = ..., gpus_claimed: bool = ..., gpus_from_creation: bool = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("revoked", "taken")
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    revoked: _containers.RepeatedCompositeFieldContainer[AttemptRef]
    taken: bool
    def __init__(self, revoked: _Optional[_Iterable[_Union[AttemptRef, _Mapping]]] = ..., taken: bool = ...) -> None: ...

class Revoke(_message.Message):
    __slots__ = ("attempts",)
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    attempts: _containers.RepeatedCompositeFieldContainer[AttemptRef]
    def __init__(self, attempts: _Optional[_Iterable[_Union[AttemptRef, _Mapping]]] = ...) -> None: ...

class GroupReady(_message.Message):
    __slots__ = ("task_id", "group_id", "sessions", "metadata", "ready_ms", "carried_over_sessions")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    READY_MS_FIELD_NUMBER: _ClassVar[int]
    CARRIED_OVER_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    group_id: str
    sessions: _containers.RepeatedCompositeFieldContainer[SessionResult]
    metadata: _struct_pb2.Struct
    ready_ms: int
    carried_over_sessions: int
    def __init__(self, task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., sessions: _Optional[_Iterable[_Union[SessionResult, _Mapping]]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., ready_ms: _Optional[int] = ..., carried_over_sessions: _Optional[int] = ...) -> None: ...

class SessionResult(_message.Message):
    __slots__ = ("session_id", "sample_index", "attempt", "outcome", "failure", "reward", "trajectory", "stats", "evaluation", "trace_rewards", "graded")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    GRADED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    sample_index: int
    attempt: int
    outcome: _session_pb2.Outcome
    failure: _failure_pb2.Failure
    reward: float
    trajectory: _blob_pb2.BlobRef
    stats: _session_pb2.SessionStats
    evaluation: _struct_pb2.Struct
    trace_rewards: _containers.RepeatedCompositeFieldContainer[TraceReward]
    graded: _graded_pb2.Graded
    def __init__(self, session_id: _Optional[str] = ..., sample_index: _Optional[int] = ..., attempt: _Optional[int] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reward: _Optional[float] = ..., trajectory: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ..., stats: _Optional[_Union[_session_pb2.SessionStats, _Mapping]] = ..., evaluation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., trace_rewards: _Optional[_Iterable[_Union[TraceReward, _Mapping]]] = ..., graded: _Optional[_Union[_graded_pb2.Graded, _Mapping]] = ...) -> None: ...

class Capability(_message.Message):
    __slots__ = ("ref", "digest", "expire_ms", "model_name", "sampling", "model_pools")
    REF_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_MS_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    MODEL_POOLS_FIELD_NUMBER: _ClassVar[int]
    ref: AttemptRef
    digest: str
    expire_ms: int
    model_name: str
    sampling: _task_pb2.Sampling
    model_pools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ref: _Optional[_Union[AttemptRef, _Mapping]] = ..., digest: _Optional[str] = ..., expire_ms: _Optional[int] = ..., model_name: _Optional[str] = ..., sampling: _Optional[_Union[_task_pb2.Sampling, _Mapping]] = ..., model_pools: _Optional[_Iterable[str]] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("task_id", "sent", "sent_count", "unacked", "members", "last_member", "shared", "seeks", "sent_ever", "dropped_groups", "dropped_sessions", "mark_batch_id", "mark_stored_ms")
    class DroppedGroupsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class DroppedSessionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    SENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNACKED_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    LAST_MEMBER_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    SEEKS_FIELD_NUMBER: _ClassVar[int]
    SENT_EVER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MARK_BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MARK_STORED_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    sent: int
    sent_count: int
    unacked: _containers.RepeatedCompositeFieldContainer[UnackedBatch]
    members: _containers.RepeatedCompositeFieldContainer[CursorMember]
    last_member: int
    shared: bool
    seeks: int
    sent_ever: int
    dropped_groups: _containers.ScalarMap[str, int]
    dropped_sessions: _containers.ScalarMap[str, int]
    mark_batch_id: int
    mark_stored_ms: int
    def __init__(self, task_id: _Optional[str] = ..., sent: _Optional[int] = ..., sent_count: _Optional[int] = ..., unacked: _Optional[_Iterable[_Union[UnackedBatch, _Mapping]]] = ..., members: _Optional[_Iterable[_Union[CursorMember, _Mapping]]] = ..., last_member: _Optional[int] = ..., shared: bool = ..., seeks: _Optional[int] = ..., sent_ever: _Optional[int] = ..., dropped_groups: _Optional[_Mapping[str, int]] = ..., dropped_sessions: _Optional[_Mapping[str, int]] = ..., mark_batch_id: _Optional[int] = ..., mark_stored_ms: _Optional[int] = ...) -> None: ...

class CursorMember(_message.Message):
    __slots__ = ("number", "stream_id", "seen_ms")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    number: int
    stream_id: str
    seen_ms: int
    def __init__(self, number: _Optional[int] = ..., stream_id: _Optional[str] = ..., seen_ms: _Optional[int] = ...) -> None: ...

class UnackedBatch(_message.Message):
    __slots__ = ("batch_id", "ordinal", "deliveries", "member", "tokens", "not_before_ms", "nacks", "nack_reason", "dropped_reason", "dropped_sessions")
    class DroppedSessionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_MS_FIELD_NUMBER: _ClassVar[int]
    NACKS_FIELD_NUMBER: _ClassVar[int]
    NACK_REASON_FIELD_NUMBER: _ClassVar[int]
    DROPPED_REASON_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    batch_id: int
    ordinal: int
    deliveries: int
    member: int
    tokens: int
    not_before_ms: int
    nacks: int
    nack_reason: str
    dropped_reason: str
    dropped_sessions: _containers.ScalarMap[str, int]
    def __init__(self, batch_id: _Optional[int] = ..., ordinal: _Optional[int] = ..., deliveries: _Optional[int] = ..., member: _Optional[int] = ..., tokens: _Optional[int] = ..., not_before_ms: _Optional[int] = ..., nacks: _Optional[int] = ..., nack_reason: _Optional[str] = ..., dropped_reason: _Optional[str] = ..., dropped_sessions: _Optional[_Mapping[str, int]] = ...) -> None: ...
