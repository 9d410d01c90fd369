from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Completion(_message.Message):
    __slots__ = ("call_id", "index", "start_seq", "end_seq", "base_index", "base_length", "prompt_suffix_ids", "prompt_length", "sampled_ids", "logprobs", "finish_reason", "model", "engine", "policy_version", "weight_version", "trainable", "role", "message_digests", "reply_digest", "message_bodies", "sampling", "usage", "times", "error_reason", "tools_digest", "base_message_count", "dialect", "role_rule", "mode", "drift", "engine_tries", "logprob_mode", "choice_index", "policy_spans", "normalised_by", "engine_url", "no_token_ids", "routed_experts", "routed_experts_fault", "stored_from")
    class MessageBodiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    START_SEQ_FIELD_NUMBER: _ClassVar[int]
    END_SEQ_FIELD_NUMBER: _ClassVar[int]
    BASE_INDEX_FIELD_NUMBER: _ClassVar[int]
    BASE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PROMPT_SUFFIX_IDS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    REPLY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BODIES_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    TOOLS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BASE_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    ROLE_RULE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_TRIES_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_MODE_FIELD_NUMBER: _ClassVar[int]
    CHOICE_INDEX_FIELD_NUMBER: _ClassVar[int]
    POLICY_SPANS_FIELD_NUMBER: _ClassVar[int]
    NORMALISED_BY_FIELD_NUMBER: _ClassVar[int]
    ENGINE_URL_FIELD_NUMBER: _ClassVar[int]
    NO_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    ROUTED_EXPERTS_FIELD_NUMBER: _ClassVar[int]
    ROUTED_EXPERTS_FAULT_FIELD_NUMBER: _ClassVar[int]
    STORED_FROM_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    index: int
    start_seq: int
    end_seq: int
    base_index: int
    base_length: int
    prompt_suffix_ids: bytes
    prompt_length: int
    sampled_ids: bytes
    logprobs: bytes
    finish_reason: str
    model: str
    engine: str
    policy_version: int
    weight_version: str
    trainable: bool
    role: str
    message_digests: _containers.RepeatedScalarFieldContainer[str]
    reply_digest: str
    message_bodies: _containers.ScalarMap[str, str]
    sampling: _struct_pb2.Struct
    usage: Usage
    times: CallTimes
    error_reason: str
    tools_digest: str
    base_message_count: int
    dialect: str
    role_rule: str
    mode: str
    drift: str
    engine_tries: int
    logprob_mode: str
    choice_index: int
    policy_spans: _containers.RepeatedCompositeFieldContainer[PolicySpan]
    normalised_by: _containers.RepeatedScalarFieldContainer[str]
    engine_url: str
    no_token_ids: bool
    routed_experts: RoutedExperts
    routed_experts_fault: str
    stored_from: int
    def __init__(self, call_id: _Optional[str] = ..., index: _Optional[int] = ..., start_seq: _Optional[int] = ..., end_seq: _Optional[int] = ..., base_index: _Optional[int] = ..., base_length: _Optional[int] = ..., prompt_suffix_ids: _Optional[bytes] = ..., prompt_length: _Optional[int] = ..., sampled_ids: _Optional[bytes] = ..., logprobs: _Optional[bytes] = ..., finish_reason: _Optional[str] = ..., model: _Optional[str] = ..., engine: _Optional[str] = ..., policy_version: _Optional[int] = ..., weight_version: _Optional[str] = ..., trainable: bool = ..., role: _Optional[str] = ..., message_digests: _Optional[_Iterable[str]] = ..., reply_digest: _Optional[str] = ..., message_bodies: _Optional[_Mapping[str, str]] = ..., sampling: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., times: _Optional[_Union[CallTimes, _Mapping]] = ..., error_reason: _Optional[str] = ..., tools_digest: _Optional[str] = ..., base_message_count: _Optional[int] = ..., dialect: _Optional[str] = ..., role_rule: _Optional[str] = ..., mode: _Optional[str] = ..., drift: _Optional[str] = ..., engine_tries: _Optional[int] = ..., logprob_mode: _Optional[str] = ..., choice_index: _Optional[int] = ..., policy_spans: _Optional[_Iterable[_Union[PolicySpan, _Mapping]]] = ..., normalised_by: _Optional[_Iterable[str]] = ..., engine_url: _Optional[str] = ..., no_token_ids: bool = ..., routed_experts: _Optional[_Union[RoutedExperts, _Mapping]] = ..., routed_experts_fault: _Optional[str] = ..., stored_from: _Optional[int] = ...) -> None: ...

class RoutedExperts(_message.Message):
    __slots__ = ("rows", "first", "layers", "top_k", "item_bytes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    ITEM_BYTES_FIELD_NUMBER: _ClassVar[int]
    rows: bytes
    first: int
    layers: int
    top_k: int
    item_bytes: int
    def __init__(self, rows: _Optional[bytes] = ..., first: _Optional[int] = ..., layers: _Optional[int] = ..., top_k: _Optional[int] = ..., item_bytes: _Optional[int] = ...) -> None: ...

class PolicySpan(_message.Message):
    __slots__ = ("policy_version", "weight_version", "start", "end")
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    policy_version: int
    weight_version: str
    start: int
    end: int
    def __init__(self, policy_version: _Optional[int] = ..., weight_version: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "cached_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ...) -> None: ...

class CallTimes(_message.Message):
    __slots__ = ("start_ms", "first_token_ms", "total_ms", "queue_ms", "decode_ms")
    START_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKEN_MS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    DECODE_MS_FIELD_NUMBER: _ClassVar[int]
    start_ms: int
    first_token_ms: int
    total_ms: int
    queue_ms: int
    decode_ms: int
    def __init__(self, start_ms: _Optional[int] = ..., first_token_ms: _Optional[int] = ..., total_ms: _Optional[int] = ..., queue_ms: _Optional[int] = ..., decode_ms: _Optional[int] = ...) -> None: ...
