from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PauseMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PAUSE_MODE_UNSPECIFIED: _ClassVar[PauseMode]
    PAUSE_MODE_DRAIN: _ClassVar[PauseMode]
    PAUSE_MODE_ABORT_AND_RETRY: _ClassVar[PauseMode]
    PAUSE_MODE_KEEP: _ClassVar[PauseMode]
PAUSE_MODE_UNSPECIFIED: PauseMode
PAUSE_MODE_DRAIN: PauseMode
PAUSE_MODE_ABORT_AND_RETRY: PauseMode
PAUSE_MODE_KEEP: PauseMode

class Policy(_message.Message):
    __slots__ = ("policy_version", "weight_version", "phase", "mode", "pause_id", "pause_expire_ms", "pauses")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[Policy.Phase]
        PHASE_SERVING: _ClassVar[Policy.Phase]
        PHASE_PAUSING: _ClassVar[Policy.Phase]
        PHASE_PAUSED: _ClassVar[Policy.Phase]
    PHASE_UNSPECIFIED: Policy.Phase
    PHASE_SERVING: Policy.Phase
    PHASE_PAUSING: Policy.Phase
    PHASE_PAUSED: Policy.Phase
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSE_EXPIRE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSES_FIELD_NUMBER: _ClassVar[int]
    policy_version: int
    weight_version: str
    phase: Policy.Phase
    mode: PauseMode
    pause_id: str
    pause_expire_ms: int
    pauses: _containers.RepeatedCompositeFieldContainer[PauseSpan]
    def __init__(self, policy_version: _Optional[int] = ..., weight_version: _Optional[str] = ..., phase: _Optional[_Union[Policy.Phase, str]] = ..., mode: _Optional[_Union[PauseMode, str]] = ..., pause_id: _Optional[str] = ..., pause_expire_ms: _Optional[int] = ..., pauses: _Optional[_Iterable[_Union[PauseSpan, _Mapping]]] = ...) -> None: ...

class PauseSpan(_message.Message):
    __slots__ = ("start_ms", "end_ms")
    START_MS_FIELD_NUMBER: _ClassVar[int]
    END_MS_FIELD_NUMBER: _ClassVar[int]
    start_ms: int
    end_ms: int
    def __init__(self, start_ms: _Optional[int] = ..., end_ms: _Optional[int] = ...) -> None: ...
