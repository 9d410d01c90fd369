from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from polar_mesh.gen.polar.common.v1 import failure_pb2 as _failure_pb2
from polar_mesh.gen.polar.common.v1 import network_pb2 as _network_pb2
from polar_mesh.gen.polar.common.v1 import task_pb2 as _task_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LeaseOwner(_message.Message):
    __slots__ = ("session_id", "attempt", "purpose")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    purpose: str
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., purpose: _Optional[str] = ...) -> None: ...

class Runtime(_message.Message):
    __slots__ = ("runtime_id", "owner", "backend", "workdir", "env", "expire_time", "proxy_url")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    WORKDIR_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    PROXY_URL_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    owner: LeaseOwner
    backend: str
    workdir: str
    env: _containers.ScalarMap[str, str]
    expire_time: _timestamp_pb2.Timestamp
    proxy_url: str
    def __init__(self, runtime_id: _Optional[str] = ..., owner: _Optional[_Union[LeaseOwner, _Mapping]] = ..., backend: _Optional[str] = ..., workdir: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., proxy_url: _Optional[str] = ...) -> None: ...

class AcquireRuntimeRequest(_message.Message):
    __slots__ = ("spec", "owner", "ttl", "for_evaluation", "prepare_timeout")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    FOR_EVALUATION_FIELD_NUMBER: _ClassVar[int]
    PREPARE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    spec: _task_pb2.RuntimeSpec
    owner: LeaseOwner
    ttl: _duration_pb2.Duration
    for_evaluation: bool
    prepare_timeout: _duration_pb2.Duration
    def __init__(self, spec: _Optional[_Union[_task_pb2.RuntimeSpec, _Mapping]] = ..., owner: _Optional[_Union[LeaseOwner, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., for_evaluation: bool = ..., prepare_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcquireRuntimeResponse(_message.Message):
    __slots__ = ("runtime",)
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    runtime: Runtime
    def __init__(self, runtime: _Optional[_Union[Runtime, _Mapping]] = ...) -> None: ...

class RenewLeaseRequest(_message.Message):
    __slots__ = ("runtime_id", "ttl")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    ttl: _duration_pb2.Duration
    def __init__(self, runtime_id: _Optional[str] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RenewLeaseResponse(_message.Message):
    __slots__ = ("runtime",)
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    runtime: Runtime
    def __init__(self, runtime: _Optional[_Union[Runtime, _Mapping]] = ...) -> None: ...

class Mount(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ExecRequest(_message.Message):
    __slots__ = ("runtime_id", "argv", "cwd", "env", "timeout", "stdin", "mounts", "proxy_access", "files", "default_env", "lease")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class DefaultEnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    PROXY_ACCESS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_ENV_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    cwd: str
    env: _containers.ScalarMap[str, str]
    timeout: _duration_pb2.Duration
    stdin: bytes
    mounts: _containers.RepeatedCompositeFieldContainer[Mount]
    proxy_access: bool
    files: _containers.RepeatedCompositeFieldContainer[_task_pb2.UploadFile]
    default_env: _containers.ScalarMap[str, str]
    lease: _duration_pb2.Duration
    def __init__(self, runtime_id: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., cwd: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., stdin: _Optional[bytes] = ..., mounts: _Optional[_Iterable[_Union[Mount, _Mapping]]] = ..., proxy_access: bool = ..., files: _Optional[_Iterable[_Union[_task_pb2.UploadFile, _Mapping]]] = ..., default_env: _Optional[_Mapping[str, str]] = ..., lease: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExecResponse(_message.Message):
    __slots__ = ("stdout", "stderr", "result")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    result: ExecResult
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., result: _Optional[_Union[ExecResult, _Mapping]] = ...) -> None: ...

class ExecResult(_message.Message):
    __slots__ = ("exit_code", "timed_out", "out_of_memory", "empty", "peak_memory_bytes", "cpu_ms", "wall_ms", "proxy_connect_failures", "dropped_output_bytes", "denied", "proxy_away", "dropped_stderr_bytes")
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_MEMORY_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    PROXY_CONNECT_FAILURES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    PROXY_AWAY_FIELD_NUMBER: _ClassVar[int]
    DROPPED_STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    exit_code: int
    timed_out: bool
    out_of_memory: bool
    empty: bool
    peak_memory_bytes: int
    cpu_ms: int
    wall_ms: int
    proxy_connect_failures: int
    dropped_output_bytes: int
    denied: _network_pb2.DeniedConnections
    proxy_away: bool
    dropped_stderr_bytes: int
    def __init__(self, exit_code: _Optional[int] = ..., timed_out: bool = ..., out_of_memory: bool = ..., empty: bool = ..., peak_memory_bytes: _Optional[int] = ..., cpu_ms: _Optional[int] = ..., wall_ms: _Optional[int] = ..., proxy_connect_failures: _Optional[int] = ..., dropped_output_bytes: _Optional[int] = ..., denied: _Optional[_Union[_network_pb2.DeniedConnections, _Mapping]] = ..., proxy_away: bool = ..., dropped_stderr_bytes: _Optional[int] = ...) -> None: ...

class LimitExecRequest(_message.Message):
    __slots__ = ("runtime_id", "timeout")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    timeout: _duration_pb2.Duration
    def __init__(self, runtime_id: _Optional[str] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class LimitExecResponse(_message.Message):
    __slots__ = ("running",)
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    running: bool
    def __init__(self, running: bool = ...) -> None: ...

class PutFilesRequest(_message.Message):
    __slots__ = ("runtime_id", "files")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    files: _containers.RepeatedCompositeFieldContainer[_task_pb2.UploadFile]
    def __init__(self, runtime_id: _Optional[str] = ..., files: _Optional[_Iterable[_Union[_task_pb2.UploadFile, _Mapping]]] = ...) -> None: ...

class PutFilesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetFileRequest(_message.Message):
    __slots__ = ("runtime_id", "path")
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    path: str
    def __init__(self, runtime_id: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GetFileResponse(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...

class ReleaseRuntimeRequest(_message.Message):
    __slots__ = ("runtime_id",)
    RUNTIME_ID_FIELD_NUMBER: _ClassVar[int]
    runtime_id: str
    def __init__(self, runtime_id: _Optional[str] = ...) -> None: ...

class ReleaseRuntimeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRuntimesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRuntimesResponse(_message.Message):
    __slots__ = ("runtimes", "backends")
    RUNTIMES_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    runtimes: _containers.RepeatedCompositeFieldContainer[Runtime]
    backends: _containers.RepeatedCompositeFieldContainer[Backend]
    def __init__(self, runtimes: _Optional[_Iterable[_Union[Runtime, _Mapping]]] = ..., backends: _Optional[_Iterable[_Union[Backend, _Mapping]]] = ...) -> None: ...

class Backend(_message.Message):
    __slots__ = ("name", "unavailable", "isolates", "images")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    ISOLATES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    name: str
    unavailable: _failure_pb2.Failure
    isolates: bool
    images: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., unavailable: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., isolates: bool = ..., images: _Optional[_Iterable[str]] = ...) -> None: ...
