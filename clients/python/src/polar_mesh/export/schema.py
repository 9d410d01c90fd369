"""The columns of each kind of export, and how a kind of column is written down."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

#: Grows when a column comes or changes its meaning.
SCHEMA_VERSION = 3

#: Kinds of columns that are numpy arrays in a row, and their item type.
ARRAYS = {"ids": "int32", "mask": "uint8", "logprobs": "float32"}

#: A message of a conversation. Every key is there; null where it says nothing.
MESSAGE = {
    "role": "string",
    "content": "string",
    "reasoning_content": "string",
    "tool_calls": [{"id": "string", "type": "string", "function": {"name": "string", "arguments": "string"}}],
    "tool_call_id": "string",
    "name": "string",
}

#: Routed experts of a trace, one value.
EXPERTS = {"layers": "int32", "top_k": "int32", "item_bytes": "int32", "rows": "binary", "known": ["uint8"]}

#: Kinds of columns by the type of their values: a name of Arrow's, a list of one type, or a struct.
_TYPES: Mapping[str, Any] = {
    **{kind: [item] for kind, item in ARRAYS.items()},
    "string": "string",
    "int32": "int32",
    "int64": "int64",
    "float64": "double",
    "strings": ["string"],
    "messages": [MESSAGE],
    "experts": EXPERTS,
}


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind (``ids``, ``mask``, ``logprobs``, ``experts``, ``messages`` or a scalar), what it holds."""

    name: str
    kind: str
    meaning: str


_SESSION = (
    Column("session_id", "string", "the session"),
    Column("task_id", "string", "its task"),
    Column("group_id", "string", "its group: the sessions that are compared with each other"),
    Column("sample_index", "int32", "0 to num_samples - 1"),
    Column("attempt", "int32", "the attempt that counts, from 1"),
    Column("outcome", "string", "completed, timeout, harness_error or task_error"),
    Column("reward", "float64", "the reward; null where there is none"),
)

_VERSIONS = (
    Column("policy_version_min", "int64", "smallest policy version in the session; 0 where the engine tells none"),
    Column("policy_version_max", "int64", "largest policy version in the session"),
    Column("drift", "int32", "calls of the session whose prompt does not append to its conversation"),
)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "traces": (
        *_SESSION,
        Column("builder", "string", "the builder that made the traces"),
        Column("trace", "int32", "number of the trace in its session, from 0"),
        Column("prompt_ids", "ids", "int32[P], context, never trained"),
        Column("response_ids", "ids", "int32[R]"),
        Column("loss_mask", "mask", "uint8[R]: 1 = sampled by the policy and trained, 0 = context or masked"),
        Column("logprobs", "logprobs", "float32[R]: natural logarithm, under the engine where loss_mask is 1, else 0"),
        Column("trained_tokens", "int32", "ones in loss_mask"),
        Column("trace_reward", "float64", "what the trace counts with: its own reward, else the session's; null without"),
        Column("call_ids", "strings", "the model calls in it, in order"),
        Column("masked_reasons", "strings", "why ids of each of them are masked; empty when all are trained"),
        *_VERSIONS,
        Column("evaluation", "string", "what the evaluator told beside the reward, as JSON"),
        Column("routed_experts", "experts", "experts of each id, prompt and response; null where the engine told none"),
    ),
    "sft": (
        *_SESSION,
        Column("call_id", "string", "the model call that ends the conversation"),
        Column("messages", "messages", "the conversation, the last reply included"),
        Column("tools", "string", "the tool definitions of that call, as JSON; null without tools"),
        *_VERSIONS,
    ),
    "preference": (
        Column("task_id", "string", "the task"),
        Column("group_id", "string", "the group that both sessions are of"),
        Column("prompt", "messages", "what both conversations begin with"),
        Column("chosen", "messages", "how the one with the higher reward goes on"),
        Column("rejected", "messages", "how the other one goes on"),
        Column("tools", "string", "the tool definitions of the chosen one, as JSON; null without tools"),
        Column("chosen_session_id", "string", "session of the chosen one"),
        Column("rejected_session_id", "string", "session of the rejected one"),
        Column("chosen_reward", "float64", "its reward"),
        Column("rejected_reward", "float64", "its reward, which is lower"),
    ),
}


def json_line(columns: Sequence[Column], row: Mapping[str, Any]) -> str:
    """The row as a JSON object. Floats read back to the same value, float32 columns to the same float32."""
    values = {one.name: _plain(row[one.name]) for one in columns}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(value.get("rows"), bytes):
        rows = base64.b64encode(value["rows"]).decode("ascii")
        return {name: rows if name == "rows" else _plain(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def arrow_table(what: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows as Arrow; arrays go in without lists in between. The schema document is in the metadata."""
    import pyarrow as pa

    fields = [pa.field(one.name, _arrow_type(pa, _TYPES[one.kind])) for one in columns]
    schema = pa.schema(fields, metadata={"polar_mesh.schema": schema_document(what, columns)})
    arrays = [_arrow_array(pa, one, field.type, rows) for one, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_type(pa: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        return pa.list_(_arrow_type(pa, kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, _arrow_type(pa, inner)) for name, inner in kind.items()])
    return pa.type_for_alias(kind)


def _arrow_array(pa: Any, column: Column, kind: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    values = [row[column.name] for row in rows]
    if column.kind not in ARRAYS:
        return pa.array(values, kind)
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    item = np.dtype(ARRAYS[column.kind])
    joined = np.concatenate([np.zeros(0, item), *values]).astype(item, copy=False)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(joined), type=kind)


def schema_document(what: str, columns: Sequence[Column]) -> str:
    """What each column holds, as JSON."""
    listed = [{"name": one.name, "kind": one.kind, "meaning": one.meaning} for one in columns]
    return json.dumps({"what": what, "version": SCHEMA_VERSION, "columns": listed})


def dataset_card(what: str, columns: Sequence[Column], pattern: str) -> str:
    """README.md of the folder: ``datasets.load_dataset(folder)`` reads types and files from its head."""
    # JSON has no bytes: they are base64.
    types = _TYPES if pattern.endswith("parquet") else {**_TYPES, "experts": {**EXPERTS, "rows": "string"}}
    features = [line for one in columns for line in _feature(one.name, types[one.kind], 1)]
    head = ["---", "configs:", "- config_name: default", "  data_files:", "  - split: train", f"    path: '{pattern}'"]
    table = [f"| `{one.name}` | {one.kind} | {one.meaning} |" for one in columns]
    return "\n".join(
        [
            *(*head, "dataset_info:", "  features:", *features, "---"),
            f"# polar-mesh export: {what}\n\n| column | kind | holds |\n|---|---|---|",
            *(*table, ""),
        ]
    )


def _feature(name: str, kind: Any, depth: int) -> list[str]:
    head = f"{'  ' * depth}- name: {name}"
    return [head, *_feature_type(kind, depth + 1)]


def _feature_type(kind: Any, depth: int, key: str = "dtype") -> list[str]:
    indent = "  " * depth
    if isinstance(kind, list):
        return _feature_type(kind[0], depth, "list")
    if isinstance(kind, dict):
        inner = [line for name, one in kind.items() for line in _feature(name, one, depth)]
        return [f"{indent}{'list' if key == 'list' else 'struct'}:", *inner]
    return [f"{indent}{key}: {'float64' if kind == 'double' else kind}"]
