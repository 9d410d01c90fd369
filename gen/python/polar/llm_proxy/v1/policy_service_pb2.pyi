from google.protobuf import duration_pb2 as _duration_pb2
from polar_mesh.gen.polar.event.v1 import policy_pb2 as _policy_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishVersionRequest(_message.Message):
    __slots__ = ("policy_version", "weight_version")
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    policy_version: int
    weight_version: str
    def __init__(self, policy_version: _Optional[int] = ..., weight_version: _Optional[str] = ...) -> None: ...

class PublishVersionResponse(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: _policy_pb2.Policy
    def __init__(self, policy: _Optional[_Union[_policy_pb2.Policy, _Mapping]] = ...) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ("mode", "timeout", "ttl", "pause_id")
    MODE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    mode: _policy_pb2.PauseMode
    timeout: _duration_pb2.Duration
    ttl: _duration_pb2.Duration
    pause_id: str
    def __init__(self, mode: _Optional[_Union[_policy_pb2.PauseMode, str]] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., pause_id: _Optional[str] = ...) -> None: ...

class PauseResponse(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: _policy_pb2.Policy
    def __init__(self, policy: _Optional[_Union[_policy_pb2.Policy, _Mapping]] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("pause_id", "policy_version", "weight_version")
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    pause_id: str
    policy_version: int
    weight_version: str
    def __init__(self, pause_id: _Optional[str] = ..., policy_version: _Optional[int] = ..., weight_version: _Optional[str] = ...) -> None: ...

class ResumeResponse(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: _policy_pb2.Policy
    def __init__(self, policy: _Optional[_Union[_policy_pb2.Policy, _Mapping]] = ...) -> None: ...

class GetPolicyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetPolicyResponse(_message.Message):
    __slots__ = ("policy", "proxies")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PROXIES_FIELD_NUMBER: _ClassVar[int]
    policy: _policy_pb2.Policy
    proxies: _containers.RepeatedCompositeFieldContainer[PolicyProxy]
    def __init__(self, policy: _Optional[_Union[_policy_pb2.Policy, _Mapping]] = ..., proxies: _Optional[_Iterable[_Union[PolicyProxy, _Mapping]]] = ...) -> None: ...

class PolicyProxy(_message.Message):
    __slots__ = ("node_id", "boot_id", "revision", "in_flight", "waiting")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    boot_id: str
    revision: int
    in_flight: int
    waiting: int
    def __init__(self, node_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., revision: _Optional[int] = ..., in_flight: _Optional[int] = ..., waiting: _Optional[int] = ...) -> None: ...
