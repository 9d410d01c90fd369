from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NetworkPolicy(_message.Message):
    __slots__ = ("egress", "prepare_egress")
    EGRESS_FIELD_NUMBER: _ClassVar[int]
    PREPARE_EGRESS_FIELD_NUMBER: _ClassVar[int]
    egress: _containers.RepeatedCompositeFieldContainer[EgressRule]
    prepare_egress: _containers.RepeatedCompositeFieldContainer[EgressRule]
    def __init__(self, egress: _Optional[_Iterable[_Union[EgressRule, _Mapping]]] = ..., prepare_egress: _Optional[_Iterable[_Union[EgressRule, _Mapping]]] = ...) -> None: ...

class EgressRule(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class DeniedConnections(_message.Message):
    __slots__ = ("count", "targets")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    count: int
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, count: _Optional[int] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...
