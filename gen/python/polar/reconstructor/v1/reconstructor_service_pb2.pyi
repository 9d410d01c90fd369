from polar_mesh.gen.polar.reconstructor.v1 import trajectory_pb2 as _trajectory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExportKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPORT_KIND_UNSPECIFIED: _ClassVar[ExportKind]
    EXPORT_KIND_CALLS: _ClassVar[ExportKind]
    EXPORT_KIND_TRACES: _ClassVar[ExportKind]
EXPORT_KIND_UNSPECIFIED: ExportKind
EXPORT_KIND_CALLS: ExportKind
EXPORT_KIND_TRACES: ExportKind

class StreamTrajectoriesRequest(_message.Message):
    __slots__ = ("consumer", "max_unacked", "task_id")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    MAX_UNACKED_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    max_unacked: int
    task_id: str
    def __init__(self, consumer: _Optional[str] = ..., max_unacked: _Optional[int] = ..., task_id: _Optional[str] = ...) -> None: ...

class StreamTrajectoriesResponse(_message.Message):
    __slots__ = ("batch",)
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: _trajectory_pb2.TrajectoryBatch
    def __init__(self, batch: _Optional[_Union[_trajectory_pb2.TrajectoryBatch, _Mapping]] = ...) -> None: ...

class AckTrajectoriesRequest(_message.Message):
    __slots__ = ("consumer", "batch_ids")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    BATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    batch_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, consumer: _Optional[str] = ..., batch_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class AckTrajectoriesResponse(_message.Message):
    __slots__ = ("floor",)
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    floor: int
    def __init__(self, floor: _Optional[int] = ...) -> None: ...

class GetTrajectoryRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("name", "floor", "acked_above_floor", "pending", "connected")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    ACKED_ABOVE_FLOOR_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    floor: int
    acked_above_floor: int
    pending: int
    connected: bool
    def __init__(self, name: _Optional[str] = ..., floor: _Optional[int] = ..., acked_above_floor: _Optional[int] = ..., pending: _Optional[int] = ..., connected: bool = ...) -> None: ...
