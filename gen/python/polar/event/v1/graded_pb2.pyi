from polar_mesh.gen.polar.common.v1 import blob_pb2 as _blob_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredChanges(_message.Message):
    __slots__ = ("session_id", "attempt", "patch", "repo_dir", "patch_command", "exit_code", "error_tail", "too_large", "endless", "lacks_base", "left_out_files")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    REPO_DIR_FIELD_NUMBER: _ClassVar[int]
    PATCH_COMMAND_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_TAIL_FIELD_NUMBER: _ClassVar[int]
    TOO_LARGE_FIELD_NUMBER: _ClassVar[int]
    ENDLESS_FIELD_NUMBER: _ClassVar[int]
    LACKS_BASE_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FILES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    patch: bytes
    repo_dir: str
    patch_command: str
    exit_code: int
    error_tail: str
    too_large: bool
    endless: bool
    lacks_base: bool
    left_out_files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., patch: _Optional[bytes] = ..., repo_dir: _Optional[str] = ..., patch_command: _Optional[str] = ..., exit_code: _Optional[int] = ..., error_tail: _Optional[str] = ..., too_large: bool = ..., endless: bool = ..., lacks_base: bool = ..., left_out_files: _Optional[_Iterable[str]] = ...) -> None: ...

class Graded(_message.Message):
    __slots__ = ("outcome", "changes")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    outcome: _session_pb2.Outcome
    changes: _blob_pb2.BlobRef
    def __init__(self, outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., changes: _Optional[_Union[_blob_pb2.BlobRef, _Mapping]] = ...) -> None: ...
