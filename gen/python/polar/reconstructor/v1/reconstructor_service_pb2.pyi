from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.reconstructor.v1 import trajectory_pb2 as _trajectory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Layout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAYOUT_UNSPECIFIED: _ClassVar[Layout]
    LAYOUT_TRACES: _ClassVar[Layout]
    LAYOUT_COLUMNS: _ClassVar[Layout]

class SeekTarget(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEEK_TARGET_UNSPECIFIED: _ClassVar[SeekTarget]
    SEEK_TARGET_OLDEST: _ClassVar[SeekTarget]
    SEEK_TARGET_NEWEST: _ClassVar[SeekTarget]

class ExportKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPORT_KIND_UNSPECIFIED: _ClassVar[ExportKind]
    EXPORT_KIND_CALLS: _ClassVar[ExportKind]
    EXPORT_KIND_TRACES: _ClassVar[ExportKind]
    EXPORT_KIND_RECORDS: _ClassVar[ExportKind]
    EXPORT_KIND_MESSAGES: _ClassVar[ExportKind]
    EXPORT_KIND_IMAGES: _ClassVar[ExportKind]
    EXPORT_KIND_SUMMARIES: _ClassVar[ExportKind]
LAYOUT_UNSPECIFIED: Layout
LAYOUT_TRACES: Layout
LAYOUT_COLUMNS: Layout
SEEK_TARGET_UNSPECIFIED: SeekTarget
SEEK_TARGET_OLDEST: SeekTarget
SEEK_TARGET_NEWEST: SeekTarget
EXPORT_KIND_UNSPECIFIED: ExportKind
EXPORT_KIND_CALLS: ExportKind
EXPORT_KIND_TRACES: ExportKind
EXPORT_KIND_RECORDS: ExportKind
EXPORT_KIND_MESSAGES: ExportKind
EXPORT_KIND_IMAGES: ExportKind
EXPORT_KIND_SUMMARIES: ExportKind

class StreamTrajectoriesRequest(_message.Message):
    __slots__ = ("consumer", "max_unacked", "task_id", "max_unacked_tokens", "message_tokens", "shared", "filter", "layout")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    MAX_UNACKED_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_UNACKED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    max_unacked: int
    task_id: str
    max_unacked_tokens: int
    message_tokens: int
    shared: bool
    filter: StreamFilter
    layout: Layout
    def __init__(self, consumer: _Optional[str] = ..., max_unacked: _Optional[int] = ..., task_id: _Optional[str] = ..., max_unacked_tokens: _Optional[int] = ..., message_tokens: _Optional[int] = ..., shared: bool = ..., filter: _Optional[_Union[StreamFilter, _Mapping]] = ..., layout: _Optional[_Union[Layout, str]] = ...) -> None: ...

class StreamFilter(_message.Message):
    __slots__ = ("staleness_max", "policy_span_max", "usable_fraction_min", "drop_zero_variance", "group_tokens_max", "task_id_prefix")
    STALENESS_MAX_FIELD_NUMBER: _ClassVar[int]
    POLICY_SPAN_MAX_FIELD_NUMBER: _ClassVar[int]
    USABLE_FRACTION_MIN_FIELD_NUMBER: _ClassVar[int]
    DROP_ZERO_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    GROUP_TOKENS_MAX_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    staleness_max: int
    policy_span_max: int
    usable_fraction_min: float
    drop_zero_variance: bool
    group_tokens_max: int
    task_id_prefix: str
    def __init__(self, staleness_max: _Optional[int] = ..., policy_span_max: _Optional[int] = ..., usable_fraction_min: _Optional[float] = ..., drop_zero_variance: bool = ..., group_tokens_max: _Optional[int] = ..., task_id_prefix: _Optional[str] = ...) -> None: ...

class StreamTrajectoriesResponse(_message.Message):
    __slots__ = ("batch", "more", "policy_version", "seeks")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEEKS_FIELD_NUMBER: _ClassVar[int]
    batch: _trajectory_pb2.TrajectoryBatch
    more: _containers.RepeatedCompositeFieldContainer[_trajectory_pb2.TrajectoryBatch]
    policy_version: int
    seeks: int
    def __init__(self, batch: _Optional[_Union[_trajectory_pb2.TrajectoryBatch, _Mapping]] = ..., more: _Optional[_Iterable[_Union[_trajectory_pb2.TrajectoryBatch, _Mapping]]] = ..., policy_version: _Optional[int] = ..., seeks: _Optional[int] = ...) -> None: ...

class AckTrajectoriesRequest(_message.Message):
    __slots__ = ("consumer", "batch_ids", "seeks")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    BATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    SEEKS_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    batch_ids: _containers.RepeatedScalarFieldContainer[int]
    seeks: int
    def __init__(self, consumer: _Optional[str] = ..., batch_ids: _Optional[_Iterable[int]] = ..., seeks: _Optional[int] = ...) -> None: ...

class AckTrajectoriesResponse(_message.Message):
    __slots__ = ("floor", "policy_version", "seeks")
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEEKS_FIELD_NUMBER: _ClassVar[int]
    floor: int
    policy_version: int
    seeks: int
    def __init__(self, floor: _Optional[int] = ..., policy_version: _Optional[int] = ..., seeks: _Optional[int] = ...) -> None: ...

class NackTrajectoriesRequest(_message.Message):
    __slots__ = ("consumer", "batch_ids", "delay_ms", "reason", "delivery_counts")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    BATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_COUNTS_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    batch_ids: _containers.RepeatedScalarFieldContainer[int]
    delay_ms: int
    reason: str
    delivery_counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, consumer: _Optional[str] = ..., batch_ids: _Optional[_Iterable[int]] = ..., delay_ms: _Optional[int] = ..., reason: _Optional[str] = ..., delivery_counts: _Optional[_Iterable[int]] = ...) -> None: ...

class NackTrajectoriesResponse(_message.Message):
    __slots__ = ("waiting",)
    WAITING_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    def __init__(self, waiting: _Optional[int] = ...) -> None: ...

class SeekConsumerRequest(_message.Message):
    __slots__ = ("consumer", "target", "batch_id", "time")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    target: SeekTarget
    batch_id: int
    time: _timestamp_pb2.Timestamp
    def __init__(self, consumer: _Optional[str] = ..., target: _Optional[_Union[SeekTarget, str]] = ..., batch_id: _Optional[int] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SeekConsumerResponse(_message.Message):
    __slots__ = ("floor",)
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    floor: int
    def __init__(self, floor: _Optional[int] = ...) -> None: ...

class DeleteConsumerRequest(_message.Message):
    __slots__ = ("consumer",)
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    def __init__(self, consumer: _Optional[str] = ...) -> None: ...

class DeleteConsumerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetTrajectoryRequest(_message.Message):
    __slots__ = ("session_id", "summary")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    summary: bool
    def __init__(self, session_id: _Optional[str] = ..., summary: bool = ...) -> None: ...

class GetTrajectoryResponse(_message.Message):
    __slots__ = ("trajectory",)
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    trajectory: _trajectory_pb2.Trajectory
    def __init__(self, trajectory: _Optional[_Union[_trajectory_pb2.Trajectory, _Mapping]] = ...) -> None: ...

class ExportSessionRequest(_message.Message):
    __slots__ = ("session_id", "kind", "attempt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    kind: ExportKind
    attempt: int
    def __init__(self, session_id: _Optional[str] = ..., kind: _Optional[_Union[ExportKind, str]] = ..., attempt: _Optional[int] = ...) -> None: ...

class ExportSessionResponse(_message.Message):
    __slots__ = ("line",)
    LINE_FIELD_NUMBER: _ClassVar[int]
    line: str
    def __init__(self, line: _Optional[str] = ...) -> None: ...

class ListConsumersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListConsumersResponse(_message.Message):
    __slots__ = ("consumers",)
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    consumers: _containers.RepeatedCompositeFieldContainer[Consumer]
    def __init__(self, consumers: _Optional[_Iterable[_Union[Consumer, _Mapping]]] = ...) -> None: ...

class Consumer(_message.Message):
    __slots__ = ("name", "floor", "acked_above_floor", "pending", "connected", "streams", "nacked", "dropped_groups", "dropped_sessions")
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
    NAME_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    ACKED_ABOVE_FLOOR_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    NACKED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    floor: int
    acked_above_floor: int
    pending: int
    connected: bool
    streams: int
    nacked: int
    dropped_groups: _containers.ScalarMap[str, int]
    dropped_sessions: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., floor: _Optional[int] = ..., acked_above_floor: _Optional[int] = ..., pending: _Optional[int] = ..., connected: bool = ..., streams: _Optional[int] = ..., nacked: _Optional[int] = ..., dropped_groups: _Optional[_Mapping[str, int]] = ..., dropped_sessions: _Optional[_Mapping[str, int]] = ...) -> None: ...
