from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListHarnessesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListHarnessesResponse(_message.Message):
    __slots__ = ("harnesses",)
    HARNESSES_FIELD_NUMBER: _ClassVar[int]
    harnesses: _containers.RepeatedCompositeFieldContainer[Harness]
    def __init__(self, harnesses: _Optional[_Iterable[_Union[Harness, _Mapping]]] = ...) -> None: ...

class Harness(_message.Message):
    __slots__ = ("name", "version", "dialect", "installed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    dialect: str
    installed: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., dialect: _Optional[str] = ..., installed: bool = ...) -> None: ...

class GetSessionLogsRequest(_message.Message):
    __slots__ = ("session_id", "attempt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class GetSessionLogsResponse(_message.Message):
    __slots__ = ("stdout", "stderr", "exit_code", "attempt")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    exit_code: int
    attempt: int
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., exit_code: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...
