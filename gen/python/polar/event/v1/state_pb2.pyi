from polar_mesh.gen.polar.common.v1 import blob_pb2 as _blob_pb2
from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from polar_mesh.gen.polar.common.v1 import task_pb2 as _task_pb2
from polar_mesh.gen.polar.event.v1 import external_session_pb2 as _external_session_pb2
from polar_mesh.gen.polar.event.v1 import graded_pb2 as _graded_pb2
from polar_mesh.gen.polar.event.v1 import work_pb2 as _work_pb2
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2 as _scheduler_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Commit(_message.Message):
    __slots__ = ("epoch", "changes", "unix_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    unix_ms: int
    def __init__(self, epoch: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., unix_ms: _Optional[int] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("epoch_began", "task", "session", "group_announced", "node_drained", "task_tombstone", "callback_done", "callback_owed", "task_archived", "revision_reached", "queue_used", "order_reached")
    EPOCH_BEGAN_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    NODE_DRAINED_FIELD_NUMBER: _ClassVar[int]
    TASK_TOMBSTONE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_DONE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_OWED_FIELD_NUMBER: _ClassVar[int]
    TASK_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    REVISION_REACHED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_USED_FIELD_NUMBER: _ClassVar[int]
    ORDER_REACHED_FIELD_NUMBER: _ClassVar[int]
    epoch_began: EpochBegan
    task: TaskRecord
    session: SessionRecord
    group_announced: GroupAnnounced
    node_drained: NodeDrained
    task_tombstone: TaskTombstone
    callback_done: CallbackDone
    callback_owed: CallbackOwed
    task_archived: TaskArchived
    revision_reached: RevisionReached
    queue_used: QueueUsed
    order_reached: OrderReached
    def __init__(self, epoch_began: _Optional[_Union[EpochBegan, _Mapping]] = ..., task: _Optional[_Union[TaskRecord, _Mapping]] = ..., session: _Optional[_Union[SessionRecord, _Mapping]] = ..., group_announced: _Optional[_Union[GroupAnnounced, _Mapping]] = ..., node_drained: _Optional[_Union[NodeDrained, _Mapping]] = ..., task_tombstone: _Optional[_Union[TaskTombstone, _Mapping]] = ..., callback_done: _Optional[_Union[CallbackDone, _Mapping]] = ..., callback_owed: _Optional[_Union[CallbackOwed, _Mapping]] = ..., task_archived: _Optional[_Union[TaskArchived, _Mapping]] = ..., revision_reached: _Optional[_Union[RevisionReached, _Mapping]] = ..., queue_used: _Optional[_Union[QueueUsed, _Mapping]] = ..., order_reached: _Optional[_Union[OrderReached, _Mapping]] = ...) -> None: ...

class EpochBegan(_message.Message):
    __slots__ = ("holder",)
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    holder: str
    def __init__(self, holder: _Optional[str] = ...) -> None: ...

class TaskRecord(_message.Message):
    __slots__ = ("task_id", "request_id", "spec_sha256", "inline_spec", "spec_ref", "files_ref", "create_ms", "session_prefix", "num_samples", "outline")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_SHA256_FIELD_NUMBER: _ClassVar[int]
    INLINE_SPEC_FIELD_NUMBER: _ClassVar[int]
    SPEC_REF_FIELD_NUMBER: _ClassVar[int]
    FILES_REF_FIELD_NUMBER: _ClassVar[int]
    CREATE_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_PREFIX_FIELD_NUMBER: _ClassVar[int]
    NUM_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    OUTLINE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    request_id: str
    spec_sha256: str
    inline_spec: _task_pb2.TaskSpec
    spec_ref: _blob_pb2.BlobRef
    files_ref: _blob_pb2.BlobRef
    create_ms: int
    session_prefix: str
    num_samples: int
    outline: _task_pb2.TaskSpec
    def __init__(self, task_id: _Optional[str] = ..., request_id: _Optional[str] = ..., spec_sha256: _Optional[str] = ..., inline_spec: _Optional[_Union[_task_pb2.TaskSpec, _Mapping]] = ..., spec_ref: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ..., files_ref: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ..., create_ms: _Optional[int] = ..., session_prefix: _Optional[str] = ..., num_samples: _Optional[int] = ..., outline: _Optional[_Union[_task_pb2.TaskSpec, _Mapping]] = ...) -> None: ...

class SessionRecord(_message.Message):
    __slots__ = ("session", "boot_id", "runtime_id", "ran", "built", "evaluated", "state_ms", "not_before_ms", "evaluate_failure", "attempt_base", "revision", "proxy_url", "install_ms", "installed_ms", "graded", "opened", "closed")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    RAN_FIELD_NUMBER: _ClassVar[int]
    BUILT_FIELD_NUMBER: _ClassVar[int]
    EVALUATED_FIELD_NUMBER: _ClassVar[int]
    STATE_MS_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_MS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FAILURE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_BASE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PROXY_URL_FIELD_NUMBER: _ClassVar[int]
    INSTALL_MS_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_MS_FIELD_NUMBER: _ClassVar[int]
    GRADED_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    boot_id: str
    runtime_id: str
    ran: _work_pb2.Ran
    built: _work_pb2.Built
    evaluated: _work_pb2.Evaluated
    state_ms: int
    not_before_ms: int
    evaluate_failure: _failure_pb2.Failure
    attempt_base: int
    revision: int
    proxy_url: str
    install_ms: int
    installed_ms: int
    graded: _graded_pb2.Graded
    opened: _external_session_pb2.Opened
    closed: _external_session_pb2.Closed
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., boot_id: _Optional[str] = ..., runtime_id: _Optional[str] = ..., ran: _Optional[_Union[_work_pb2.Ran, _Mapping]] = ..., built: _Optional[_Union[_work_pb2.Built, _Mapping]] = ..., evaluated: _Optional[_Union[_work_pb2.Evaluated, _Mapping]] = ..., state_ms: _Optional[int] = ..., not_before_ms: _Optional[int] = ..., evaluate_failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., attempt_base: _Optional[int] = ..., revision: _Optional[int] = ..., proxy_url: _Optional[str] = ..., install_ms: _Optional[int] = ..., installed_ms: _Optional[int] = ..., graded: _Optional[_Union[_graded_pb2.Graded, _Mapping]] = ..., opened: _Optional[_Union[_external_session_pb2.Opened, _Mapping]] = ..., closed: _Optional[_Union[_external_session_pb2.Closed, _Mapping]] = ...) -> None: ...

class NodeDrained(_message.Message):
    __slots__ = ("node_id", "draining")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    draining: bool
    def __init__(self, node_id: _Optional[str] = ..., draining: bool = ...) -> None: ...

class TaskTombstone(_message.Message):
    __slots__ = ("task_id", "expire_ms")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    expire_ms: int
    def __init__(self, task_id: _Optional[str] = ..., expire_ms: _Optional[int] = ...) -> None: ...

class CallbackOwed(_message.Message):
    __slots__ = ("task_id", "group_id", "body")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    group_id: str
    body: str
    def __init__(self, task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., body: _Optional[str] = ...) -> None: ...

class CallbackDone(_message.Message):
    __slots__ = ("task_id", "group_id", "delivered")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    group_id: str
    delivered: bool
    def __init__(self, task_id: _Optional[str] = ..., group_id: _Optional[str] = ..., delivered: bool = ...) -> None: ...

class GroupAnnounced(_message.Message):
    __slots__ = ("task_id", "group_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    group_id: str
    def __init__(self, task_id: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class SnapshotManifest(_message.Message):
    __slots__ = ("seq", "state", "parts")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    state: _blob_pb2.BlobRef
    parts: _containers.RepeatedCompositeFieldContainer[_blob_pb2.BlobRef]
    def __init__(self, seq: _Optional[int] = ..., state: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[_blob_pb2.BlobRef, _Mapping]]] = ...) -> None: ...

class TaskArchived(_message.Message):
    __slots__ = ("task_id", "group_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    group_id: str
    def __init__(self, task_id: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class RevisionReached(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class QueueUsed(_message.Message):
    __slots__ = ("queue", "run_ms", "runs")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    run_ms: int
    runs: int
    def __init__(self, queue: _Optional[str] = ..., run_ms: _Optional[int] = ..., runs: _Optional[int] = ...) -> None: ...

class OrderReached(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: int
    def __init__(self, order: _Optional[int] = ...) -> None: ...

class ArchivedTask(_message.Message):
    __slots__ = ("record", "task")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    record: TaskRecord
    task: _scheduler_service_pb2.Task
    def __init__(self, record: _Optional[_Union[TaskRecord, _Mapping]] = ..., task: _Optional[_Union[_scheduler_service_pb2.Task, _Mapping]] = ...) -> None: ...

class ArchivedSessions(_message.Message):
    __slots__ = ("sessions",)
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionRecord]
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionRecord, _Mapping]]] = ...) -> None: ...

class LeaseRecord(_message.Message):
    __slots__ = ("holder", "public_url", "place")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_URL_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    holder: str
    public_url: str
    place: str
    def __init__(self, holder: _Optional[str] = ..., public_url: _Optional[str] = ..., place: _Optional[str] = ...) -> None: ...
