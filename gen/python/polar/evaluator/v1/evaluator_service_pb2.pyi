from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListEvaluatorsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListEvaluatorsResponse(_message.Message):
    __slots__ = ("evaluators",)
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    evaluators: _containers.RepeatedCompositeFieldContainer[Evaluator]
    def __init__(self, evaluators: _Optional[_Iterable[_Union[Evaluator, _Mapping]]] = ...) -> None: ...

class Evaluator(_message.Message):
    __slots__ = ("name", "summary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    summary: str
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...
