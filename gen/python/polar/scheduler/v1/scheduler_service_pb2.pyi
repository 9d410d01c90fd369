from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from polar_mesh.gen.polar.common.v1 import task_pb2 as _task_pb2
from polar_mesh.gen.polar.scheduler.v1 import callback_state_pb2 as _callback_state_pb2
from polar_mesh.gen.polar.scheduler.v1 import external_session_pb2 as _external_session_pb2
from polar_mesh.gen.polar.scheduler.v1 import node_failures_pb2 as _node_failures_pb2
from polar_mesh.gen.polar.scheduler.v1 import task_filter_pb2 as _task_filter_pb2
from polar_mesh.gen.polar.scheduler.v1 import task_spec_pb2 as _task_spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_NO_NODE: _ClassVar[WaitReason]
    WAIT_REASON_NO_NODE_FITS: _ClassVar[WaitReason]
    WAIT_REASON_NODES_DRAINING: _ClassVar[WaitReason]
    WAIT_REASON_RETRY_PAUSE: _ClassVar[WaitReason]
    WAIT_REASON_TASK_CAP: _ClassVar[WaitReason]
    WAIT_REASON_QUEUE_CAP: _ClassVar[WaitReason]
    WAIT_REASON_NODES_FULL: _ClassVar[WaitReason]
    WAIT_REASON_TURN: _ClassVar[WaitReason]
    WAIT_REASON_RUN_SLOT: _ClassVar[WaitReason]
    WAIT_REASON_ENGINE_CAP: _ClassVar[WaitReason]
    WAIT_REASON_STATE_LOG: _ClassVar[WaitReason]
    WAIT_REASON_POLICY_PAUSED: _ClassVar[WaitReason]
    WAIT_REASON_ENGINE_PRESSURE: _ClassVar[WaitReason]
    WAIT_REASON_NODES_FAILING: _ClassVar[WaitReason]
    WAIT_REASON_HARNESS_INSTALL: _ClassVar[WaitReason]
    WAIT_REASON_OPEN: _ClassVar[WaitReason]
    WAIT_REASON_GPU: _ClassVar[WaitReason]

class RetryOnly(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRY_ONLY_UNSPECIFIED: _ClassVar[RetryOnly]
    RETRY_ONLY_INFRASTRUCTURE: _ClassVar[RetryOnly]
    RETRY_ONLY_FAILED: _ClassVar[RetryOnly]
    RETRY_ONLY_MISSING: _ClassVar[RetryOnly]
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_NO_NODE: WaitReason
WAIT_REASON_NO_NODE_FITS: WaitReason
WAIT_REASON_NODES_DRAINING: WaitReason
WAIT_REASON_RETRY_PAUSE: WaitReason
WAIT_REASON_TASK_CAP: WaitReason
WAIT_REASON_QUEUE_CAP: WaitReason
WAIT_REASON_NODES_FULL: WaitReason
WAIT_REASON_TURN: WaitReason
WAIT_REASON_RUN_SLOT: WaitReason
WAIT_REASON_ENGINE_CAP: WaitReason
WAIT_REASON_STATE_LOG: WaitReason
WAIT_REASON_POLICY_PAUSED: WaitReason
WAIT_REASON_ENGINE_PRESSURE: WaitReason
WAIT_REASON_NODES_FAILING: WaitReason
WAIT_REASON_HARNESS_INSTALL: WaitReason
WAIT_REASON_OPEN: WaitReason
WAIT_REASON_GPU: WaitReason
RETRY_ONLY_UNSPECIFIED: RetryOnly
RETRY_ONLY_INFRASTRUCTURE: RetryOnly
RETRY_ONLY_FAILED: RetryOnly
RETRY_ONLY_MISSING: RetryOnly

class Task(_message.Message):
    __slots__ = ("spec", "create_time", "end_time", "sessions_by_state", "sessions_by_outcome", "mean_reward", "task_id", "callback_state", "group_id", "harness")
    class SessionsByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class SessionsByOutcomeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SPEC_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_BY_OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MEAN_REWARD_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_STATE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    HARNESS_FIELD_NUMBER: _ClassVar[int]
    spec: _task_pb2.TaskSpec
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    sessions_by_state: _containers.ScalarMap[str, int]
    sessions_by_outcome: _containers.ScalarMap[str, int]
    mean_reward: float
    task_id: str
    callback_state: _callback_state_pb2.CallbackState
    group_id: str
    harness: str
    def __init__(self, spec: _Optional[_Union[_task_pb2.TaskSpec, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., sessions_by_state: _Optional[_Mapping[str, int]] = ..., sessions_by_outcome: _Optional[_Mapping[str, int]] = ..., mean_reward: _Optional[float] = ..., task_id: _Optional[str] = ..., callback_state: _Optional[_Union[_callback_state_pb2.CallbackState, str]] = ..., group_id: _Optional[str] = ..., harness: _Optional[str] = ...) -> None: ...

class SubmitTaskRequest(_message.Message):
    __slots__ = ("spec", "request_id")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    spec: _task_pb2.TaskSpec
    request_id: str
    def __init__(self, spec: _Optional[_Union[_task_pb2.TaskSpec, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SubmitTaskResponse(_message.Message):
    __slots__ = ("task", "session_ids")
    TASK_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    task: Task
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class SubmitTasksRequest(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[SubmitTaskRequest]
    def __init__(self, tasks: _Optional[_Iterable[_Union[SubmitTaskRequest, _Mapping]]] = ...) -> None: ...

class SubmitTasksResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[SubmitTaskResponse]
    def __init__(self, tasks: _Optional[_Iterable[_Union[SubmitTaskResponse, _Mapping]]] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("task_id", "wait", "summary")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    wait: _duration_pb2.Duration
    summary: bool
    def __init__(self, task_id: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., summary: bool = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "summary", "since_time", "filter")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    summary: bool
    since_time: _timestamp_pb2.Timestamp
    filter: _task_filter_pb2.TaskFilter
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., summary: bool = ..., since_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., filter: _Optional[_Union[_task_filter_pb2.TaskFilter, _Mapping]] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_page_token")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    next_page_token: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session", "waiting")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    waiting: Waiting
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., waiting: _Optional[_Union[Waiting, _Mapping]] = ...) -> None: ...

class Waiting(_message.Message):
    __slots__ = ("reason", "message", "ahead", "until_time")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    reason: WaitReason
    message: str
    ahead: int
    until_time: _timestamp_pb2.Timestamp
    def __init__(self, reason: _Optional[_Union[WaitReason, str]] = ..., message: _Optional[str] = ..., ahead: _Optional[int] = ..., until_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("task_id", "page_size", "page_token", "waiting")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    page_size: int
    page_token: str
    waiting: bool
    def __init__(self, task_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., waiting: bool = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token", "waiting")
    class WaitingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Waiting
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Waiting, _Mapping]] = ...) -> None: ...
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[_session_pb2.Session]
    next_page_token: str
    waiting: _containers.MessageMap[str, Waiting]
    def __init__(self, sessions: _Optional[_Iterable[_Union[_session_pb2.Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., waiting: _Optional[_Mapping[str, Waiting]] = ...) -> None: ...

class WatchTaskRequest(_message.Message):
    __slots__ = ("task_id", "resume_cursor", "summary", "changes_only")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_CURSOR_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CHANGES_ONLY_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    resume_cursor: str
    summary: bool
    changes_only: bool
    def __init__(self, task_id: _Optional[str] = ..., resume_cursor: _Optional[str] = ..., summary: bool = ..., changes_only: bool = ...) -> None: ...

class WatchTaskResponse(_message.Message):
    __slots__ = ("session", "task", "cursor")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    task: Task
    cursor: str
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class CancelTaskRequest(_message.Message):
    __slots__ = ("task_id", "ahead")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    ahead: bool
    def __init__(self, task_id: _Optional[str] = ..., ahead: bool = ...) -> None: ...

class CancelTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("node_id", "boot_id", "healthy", "backends", "prepare_slots", "run_slots", "evaluate_slots", "preparing", "ready", "running", "finishing", "heartbeat_time", "draining", "failures", "open")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    PREPARE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    RUN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    PREPARING_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    FINISHING_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    boot_id: str
    healthy: bool
    backends: _containers.RepeatedScalarFieldContainer[str]
    prepare_slots: int
    run_slots: int
    evaluate_slots: int
    preparing: int
    ready: int
    running: int
    finishing: int
    heartbeat_time: _timestamp_pb2.Timestamp
    draining: bool
    failures: _node_failures_pb2.NodeFailures
    open: int
    def __init__(self, node_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., healthy: bool = ..., backends: _Optional[_Iterable[str]] = ..., prepare_slots: _Optional[int] = ..., run_slots: _Optional[int] = ..., evaluate_slots: _Optional[int] = ..., preparing: _Optional[int] = ..., ready: _Optional[int] = ..., running: _Optional[int] = ..., finishing: _Optional[int] = ..., heartbeat_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., draining: bool = ..., failures: _Optional[_Union[_node_failures_pb2.NodeFailures, _Mapping]] = ..., open: _Optional[int] = ...) -> None: ...

class CancelSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class CancelSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class RetrySessionsRequest(_message.Message):
    __slots__ = ("task_id", "only")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    only: RetryOnly
    def __init__(self, task_id: _Optional[str] = ..., only: _Optional[_Union[RetryOnly, str]] = ...) -> None: ...

class RetrySessionsResponse(_message.Message):
    __slots__ = ("task", "session_ids")
    TASK_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    task: Task
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "weight", "max_running", "waiting", "running", "run_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    RUN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    max_running: int
    waiting: int
    running: int
    run_seconds: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ..., max_running: _Optional[int] = ..., waiting: _Optional[int] = ..., running: _Optional[int] = ..., run_seconds: _Optional[float] = ...) -> None: ...

class DrainNodeRequest(_message.Message):
    __slots__ = ("node_id", "undo")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    undo: bool
    def __init__(self, node_id: _Optional[str] = ..., undo: bool = ...) -> None: ...

class DrainNodeResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: Node
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ...) -> None: ...
