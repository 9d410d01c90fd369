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
    __slots__ = ("session_id", "attempt", "stdout_offset", "stderr_offset")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STDOUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STDERR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    stdout_offset: int
    stderr_offset: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., stdout_offset: _Optional[int] = ..., stderr_offset: _Optional[int] = ...) -> None: ...

class GetSessionLogsResponse(_message.Message):
    __slots__ = ("stdout", "stderr", "exit_code", "attempt", "running", "stdout_size", "stderr_size")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    STDOUT_SIZE_FIELD_NUMBER: _ClassVar[int]
    STDERR_SIZE_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    exit_code: int
    attempt: int
    running: bool
    stdout_size: int
    stderr_size: int
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., exit_code: _Optional[int] = ..., attempt: _Optional[int] = ..., running: bool = ..., stdout_size: _Optional[int] = ..., stderr_size: _Optional[int] = ...) -> None: ...

class ListSessionArtifactsRequest(_message.Message):
    __slots__ = ("session_id", "attempt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class ListSessionArtifactsResponse(_message.Message):
    __slots__ = ("attempt", "artifacts", "problems")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    artifacts: _containers.RepeatedCompositeFieldContainer[Artifact]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attempt: _Optional[int] = ..., artifacts: _Optional[_Iterable[_Union[Artifact, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class Artifact(_message.Message):
    __slots__ = ("path", "size_bytes", "transcript")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    transcript: bool
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., transcript: bool = ...) -> None: ...

class GetSessionArtifactRequest(_message.Message):
    __slots__ = ("session_id", "attempt", "path")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    path: str
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., path: _Optional[str] = ...) -> None: ...

class GetSessionArtifactResponse(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...
