from google.protobuf import struct_pb2 as _struct_pb2
from polar_mesh.gen.polar.common.v1 import session_pb2 as _session_pb2
from polar_mesh.gen.polar.common.v1 import task_pb2 as _task_pb2
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

class EvaluateSessionRequest(_message.Message):
    __slots__ = ("session_id", "evaluator")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    evaluator: _task_pb2.EvaluatorSpec
    def __init__(self, session_id: _Optional[str] = ..., evaluator: _Optional[_Union[_task_pb2.EvaluatorSpec, _Mapping]] = ...) -> None: ...

class EvaluateSessionResponse(_message.Message):
    __slots__ = ("session_id", "attempt", "outcome", "old_reward", "reward", "evaluation", "trace_rewards")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    OLD_REWARD_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    TRACE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    attempt: int
    outcome: _session_pb2.Outcome
    old_reward: float
    reward: float
    evaluation: _struct_pb2.Struct
    trace_rewards: _containers.RepeatedCompositeFieldContainer[CallReward]
    def __init__(self, session_id: _Optional[str] = ..., attempt: _Optional[int] = ..., outcome: _Optional[_Union[_session_pb2.Outcome, str]] = ..., old_reward: _Optional[float] = ..., reward: _Optional[float] = ..., evaluation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., trace_rewards: _Optional[_Iterable[_Union[CallReward, _Mapping]]] = ...) -> None: ...

class CallReward(_message.Message):
    __slots__ = ("call_id", "reward")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    reward: float
    def __init__(self, call_id: _Optional[str] = ..., reward: _Optional[float] = ...) -> None: ...
