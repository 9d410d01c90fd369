from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from polar_mesh.gen.polar.common.v1 import network_pb2 as _network_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Stragglers(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STRAGGLERS_UNSPECIFIED: _ClassVar[Stragglers]
    STRAGGLERS_STOP: _ClassVar[Stragglers]
    STRAGGLERS_CARRY_OVER: _ClassVar[Stragglers]
STRAGGLERS_UNSPECIFIED: Stragglers
STRAGGLERS_STOP: Stragglers
STRAGGLERS_CARRY_OVER: Stragglers

class TaskSpec(_message.Message):
    __slots__ = ("task_id", "instruction", "num_samples", "budgets", "runtime", "harness", "builder", "evaluator", "sampling", "metadata", "dispatch_priority", "max_attempts", "queue", "max_running_sessions", "early_stop", "callback_url")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    NUM_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    HARNESS_FIELD_NUMBER: _ClassVar[int]
    BUILDER_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    EARLY_STOP_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_URL_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    instruction: str
    num_samples: int
    budgets: Budgets
    runtime: RuntimeSpec
    harness: HarnessSpec
    builder: StrategySpec
    evaluator: EvaluatorSpec
    sampling: Sampling
    metadata: _struct_pb2.Struct
    dispatch_priority: int
    max_attempts: int
    queue: str
    max_running_sessions: int
    early_stop: EarlyStop
    callback_url: str
    def __init__(self, task_id: _Optional[str] = ..., instruction: _Optional[str] = ..., num_samples: _Optional[int] = ..., budgets: _Optional[_Union[Budgets, _Mapping]] = ..., runtime: _Optional[_Union[RuntimeSpec, _Mapping]] = ..., harness: _Optional[_Union[HarnessSpec, _Mapping]] = ..., builder: _Optional[_Union[StrategySpec, _Mapping]] = ..., evaluator: _Optional[_Union[EvaluatorSpec, _Mapping]] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., dispatch_priority: _Optional[int] = ..., max_attempts: _Optional[int] = ..., queue: _Optional[str] = ..., max_running_sessions: _Optional[int] = ..., early_stop: _Optional[_Union[EarlyStop, _Mapping]] = ..., callback_url: _Optional[str] = ...) -> None: ...

class EarlyStop(_message.Message):
    __slots__ = ("min_usable_sessions", "grace", "stragglers")
    MIN_USABLE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    STRAGGLERS_FIELD_NUMBER: _ClassVar[int]
    min_usable_sessions: int
    grace: _duration_pb2.Duration
    stragglers: Stragglers
    def __init__(self, min_usable_sessions: _Optional[int] = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., stragglers: _Optional[_Union[Stragglers, str]] = ...) -> None: ...

class Budgets(_message.Message):
    __slots__ = ("prepare", "run", "build", "evaluate", "queue", "ready")
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    prepare: _duration_pb2.Duration
    run: _duration_pb2.Duration
    build: _duration_pb2.Duration
    evaluate: _duration_pb2.Duration
    queue: _duration_pb2.Duration
    ready: _duration_pb2.Duration
    def __init__(self, prepare: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., run: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., build: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., evaluate: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., queue: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., ready: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k", "max_tokens", "seed_base")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SEED_BASE_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    seed_base: int
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., max_tokens: _Optional[int] = ..., seed_base: _Optional[int] = ...) -> None: ...

class RuntimeSpec(_message.Message):
    __slots__ = ("backend", "image", "prepare", "eval_prepare", "env", "workdir", "cpus", "memory_mb", "gpus", "storage_mb", "network", "prepare_each")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    EVAL_PREPARE_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    WORKDIR_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_MB_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    PREPARE_EACH_FIELD_NUMBER: _ClassVar[int]
    backend: str
    image: str
    prepare: _containers.RepeatedCompositeFieldContainer[PrepareStep]
    eval_prepare: PrepareSteps
    env: _containers.ScalarMap[str, str]
    workdir: str
    cpus: float
    memory_mb: int
    gpus: int
    storage_mb: int
    network: _network_pb2.NetworkPolicy
    prepare_each: bool
    def __init__(self, backend: _Optional[str] = ..., image: _Optional[str] = ..., prepare: _Optional[_Iterable[_Union[PrepareStep, _Mapping]]] = ..., eval_prepare: _Optional[_Union[PrepareSteps, _Mapping]] = ..., env: _Optional[_Mapping[str, str]] = ..., workdir: _Optional[str] = ..., cpus: _Optional[float] = ..., memory_mb: _Optional[int] = ..., gpus: _Optional[int] = ..., storage_mb: _Optional[int] = ..., network: _Optional[_Union[_network_pb2.NetworkPolicy, _Mapping]] = ..., prepare_each: bool = ...) -> None: ...

class PrepareSteps(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[PrepareStep]
    def __init__(self, steps: _Optional[_Iterable[_Union[PrepareStep, _Mapping]]] = ...) -> None: ...

class PrepareStep(_message.Message):
    __slots__ = ("exec", "upload_file", "upload_dir")
    EXEC_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FILE_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_DIR_FIELD_NUMBER: _ClassVar[int]
    exec: ExecStep
    upload_file: UploadFile
    upload_dir: UploadDir
    def __init__(self, exec: _Optional[_Union[ExecStep, _Mapping]] = ..., upload_file: _Optional[_Union[UploadFile, _Mapping]] = ..., upload_dir: _Optional[_Union[UploadDir, _Mapping]] = ...) -> None: ...

class ExecStep(_message.Message):
    __slots__ = ("command", "cwd", "env", "max_attempts", "retry_backoff")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_FIELD_NUMBER: _ClassVar[int]
    command: str
    cwd: str
    env: _containers.ScalarMap[str, str]
    max_attempts: int
    retry_backoff: _duration_pb2.Duration
    def __init__(self, command: _Optional[str] = ..., cwd: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., max_attempts: _Optional[int] = ..., retry_backoff: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class UploadFile(_message.Message):
    __slots__ = ("target", "content", "mode")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    target: str
    content: bytes
    mode: int
    def __init__(self, target: _Optional[str] = ..., content: _Optional[bytes] = ..., mode: _Optional[int] = ...) -> None: ...

class UploadDir(_message.Message):
    __slots__ = ("target", "files")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    target: str
    files: _containers.RepeatedCompositeFieldContainer[UploadFile]
    def __init__(self, target: _Optional[str] = ..., files: _Optional[_Iterable[_Union[UploadFile, _Mapping]]] = ...) -> None: ...

class HarnessSpec(_message.Message):
    __slots__ = ("name", "model_name", "settings", "env", "command", "model_pools", "import_path", "mcp_servers", "skills", "artifacts")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    MODEL_POOLS_FIELD_NUMBER: _ClassVar[int]
    IMPORT_PATH_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    model_name: str
    settings: _struct_pb2.Struct
    env: _containers.ScalarMap[str, str]
    command: ExecStep
    model_pools: _containers.RepeatedScalarFieldContainer[str]
    import_path: str
    mcp_servers: _containers.RepeatedCompositeFieldContainer[McpServer]
    skills: _containers.RepeatedCompositeFieldContainer[UploadFile]
    artifacts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., model_name: _Optional[str] = ..., settings: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., env: _Optional[_Mapping[str, str]] = ..., command: _Optional[_Union[ExecStep, _Mapping]] = ..., model_pools: _Optional[_Iterable[str]] = ..., import_path: _Optional[str] = ..., mcp_servers: _Optional[_Iterable[_Union[McpServer, _Mapping]]] = ..., skills: _Optional[_Iterable[_Union[UploadFile, _Mapping]]] = ..., artifacts: _Optional[_Iterable[str]] = ...) -> None: ...

class StrategySpec(_message.Message):
    __slots__ = ("strategy", "config")
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    strategy: str
    config: _struct_pb2.Struct
    def __init__(self, strategy: _Optional[str] = ..., config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class EvaluatorSpec(_message.Message):
    __slots__ = ("strategy", "config", "env", "files")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    strategy: str
    config: _struct_pb2.Struct
    env: _containers.ScalarMap[str, str]
    files: _containers.RepeatedCompositeFieldContainer[UploadFile]
    def __init__(self, strategy: _Optional[str] = ..., config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., env: _Optional[_Mapping[str, str]] = ..., files: _Optional[_Iterable[_Union[UploadFile, _Mapping]]] = ...) -> None: ...

class McpServer(_message.Message):
    __slots__ = ("name", "transport", "command", "args", "env", "url")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    name: str
    transport: str
    command: str
    args: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    url: str
    def __init__(self, name: _Optional[str] = ..., transport: _Optional[str] = ..., command: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ..., url: _Optional[str] = ...) -> None: ...
