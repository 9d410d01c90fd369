from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class GroupPack(_message.Message):
    __slots__ = ("group_crc32", "body_crc32", "body")
    GROUP_CRC32_FIELD_NUMBER: _ClassVar[int]
    BODY_CRC32_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    group_crc32: int
    body_crc32: int
    body: bytes
    def __init__(self, group_crc32: _Optional[int] = ..., body_crc32: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...
