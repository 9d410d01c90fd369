from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class EnginePressure(_message.Message):
    __slots__ = ("node_id", "calls_waiting", "cache_use")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    CALLS_WAITING_FIELD_NUMBER: _ClassVar[int]
    CACHE_USE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    calls_waiting: int
    cache_use: float
    def __init__(self, node_id: _Optional[str] = ..., calls_waiting: _Optional[int] = ..., cache_use: _Optional[float] = ...) -> None: ...
