from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class BlobRef(_message.Message):
    __slots__ = ("sha256", "size_bytes", "crc32")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC32_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    size_bytes: int
    crc32: int
    def __init__(self, sha256: _Optional[str] = ..., size_bytes: _Optional[int] = ..., crc32: _Optional[int] = ...) -> None: ...
