from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeFailures(_message.Message):
    __slots__ = ("count", "reason", "paused_until_time")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSED_UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    count: int
    reason: str
    paused_until_time: _timestamp_pb2.Timestamp
    def __init__(self, count: _Optional[int] = ..., reason: _Optional[str] = ..., paused_until_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
