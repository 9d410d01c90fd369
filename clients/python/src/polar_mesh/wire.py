"""Messages of the trajectory stream, read from their bytes without decoding the columns.

The columns of traces are nearly all of a message. Protobuf's own reader would copy each of them twice; here a message
is cut at its fields: what is small is decoded by protobuf, and a column is a slice of the received bytes. The objects
have the attributes of the messages that they stand for. A short trajectory is decoded whole: to cut it costs more than
to copy it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from .errors import Internal
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    DESCRIPTOR,
    StreamTrajectoriesRequest,
    StreamTrajectoriesResponse,
)
from .gen.polar.reconstructor.v1.trajectory_pb2 import (
    BatchColumns,
    BatchDetails,
    Trace,
    TraceExperts,
    Trajectory,
    TrajectoryBatch,
)

M = TypeVar("M", bound=Message)

#: Number, first byte and end of a field's value.
Part = tuple[int, int, int]

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_FIXED_BYTES = {_I64: 8, _I32: 4}


def _number(message: type[Message], field: str) -> int:
    return message.DESCRIPTOR.fields_by_name[field].number


_BATCH, _MORE = _number(StreamTrajectoriesResponse, "batch"), _number(StreamTrajectoriesResponse, "more")
_BATCH_PARTS = {_number(TrajectoryBatch, name): name for name in ("trajectories", "columns", "details")}
_PACKED_COLUMNS = {field.number: field.name for field in BatchColumns.DESCRIPTOR.fields}
_PACKED_NAMES = [name for name in _PACKED_COLUMNS.values() if name != "dropped_reasons"]
_TRACES = _number(Trajectory, "traces")
_EXPERTS = _number(Trace, "routed_experts")
_EXPERT_COLUMNS = {_number(TraceExperts, name): name for name in ("rows", "known")}
#: A trajectory of less is decoded by protobuf, and so are the columns of a batch.
_SHORT_BYTES = 64 * 1024
_SHORT_COLUMNS_BYTES = 512 * 1024
#: What follows the columns is cut as well from here on; below, protobuf is faster.
_LARGE_BYTES = 4096
_COLUMNS = {_number(Trace, name): name for name in ("prompt_ids", "response_ids", "loss_mask", "logprobs")}


_SERVICE = DESCRIPTOR.services_by_name["TrajectoryService"].full_name
STREAM_PATH = f"/{_SERVICE}/StreamTrajectories"
ACK_PATH = f"/{_SERVICE}/AckTrajectories"


def grpc_stream_method(channel: grpc.Channel | grpc.aio.Channel) -> Any:
    """``TrajectoryService.StreamTrajectories`` by gRPC: each message is a ``StreamMessage``, or the error of reading it.

    An error that the deserializer raised would look like a connection that broke, and be tried again.
    """
    return channel.unary_stream(
        STREAM_PATH,
        request_serializer=StreamTrajectoriesRequest.SerializeToString,
        response_deserializer=_readable,
    )


def _readable(data: bytes) -> StreamMessage | Internal:
    try:
        return StreamMessage(memoryview(data))
    except DecodeError as error:
        return Internal(f"the stream could not be read: {error!r}", code="INTERNAL")


class Cut(Generic[M]):
    """A message of which some fields are left as bytes; the others are those of ``head``."""

    def __init__(self, head: M) -> None:
        self.head = head

    def __getattr__(self, name: str) -> Any:
        return getattr(self.head, name)

    def HasField(self, name: str) -> bool:
        return self.head.HasField(name)


class StreamMessage(Cut[StreamTrajectoriesResponse]):
    """A ``StreamTrajectoriesResponse``: ``batch`` or None, and ``more``."""

    def __init__(self, data: memoryview) -> None:
        head, parts = _split(data, 0, len(data), (_BATCH, _MORE))
        super().__init__(StreamTrajectoriesResponse.FromString(head))
        batches = [WireBatch(data, start, end) for _, start, end in parts]
        self.batch = batches[0] if batches else None
        self.more = batches[1:]

    def HasField(self, name: str) -> bool:
        return self.batch is not None if name == "batch" else super().HasField(name)


class WireBatch(Cut[TrajectoryBatch]):
    """A ``TrajectoryBatch``; in LAYOUT_COLUMNS with ``columns``, each a copy of its own, by name, and without trajectories:
    these are to be made of ``details``."""

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        head, parts = _split(data, start, end, _BATCH_PARTS)
        self.head = TrajectoryBatch.FromString(head)
        self.trajectories: list[Trajectory | WireTrajectory] = []
        self.columns: dict[str, bytes] | None = None
        self.dropped_reasons: list[str] = []
        self.details = b""
        for number, begin, stop in parts:
            name = _BATCH_PARTS[number]
            if name == "columns":
                self._read_columns(data, begin, stop)
            elif name == "details":
                self.details = bytes(data[begin:stop])
            elif stop - begin < _SHORT_BYTES:
                self.trajectories.append(Trajectory.FromString(bytes(data[begin:stop])))
            else:
                self.trajectories.append(WireTrajectory(data, begin, stop))

    def _read_columns(self, data: memoryview, start: int, end: int) -> None:
        if end - start < _SHORT_COLUMNS_BYTES:
            packed = BatchColumns.FromString(bytes(data[start:end]))
            self.dropped_reasons += packed.dropped_reasons
            self.columns = {name: getattr(packed, name) for name in _PACKED_NAMES}
            return
        _, parts = _split(data, start, end, _PACKED_COLUMNS)
        self.columns = {}
        for number, begin, stop in parts:
            name = _PACKED_COLUMNS[number]
            if name == "dropped_reasons":
                self.dropped_reasons.append(str(data[begin:stop], "utf-8"))
            else:
                self.columns[name] = bytes(data[begin:stop])


class WireTrajectory(Cut[Trajectory]):
    """A ``Trajectory``."""

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        head, parts = _split(data, start, end, (_TRACES,))
        self.head = Trajectory.FromString(head)
        self.traces = [read_trace(data, begin, stop) for _, begin, stop in parts]


class ColumnTrajectory(Cut[Trajectory]):
    """A ``Trajectory`` of a batch in LAYOUT_COLUMNS."""

    def __init__(self, head: Trajectory, traces: list[WireTrace]) -> None:
        self.head = head
        self.traces = traces


def read_details(data: bytes) -> list[Trajectory]:
    """The trajectories of a batch in LAYOUT_COLUMNS, their traces without columns. Raises DecodeError."""
    return list(BatchDetails.FromString(data).trajectories)


class WireExperts(Cut[TraceExperts]):
    """A ``TraceExperts``, whose columns are copies of their own."""

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        head, parts = _split(data, start, end, _EXPERT_COLUMNS)
        super().__init__(TraceExperts.FromString(head))
        columns = {_EXPERT_COLUMNS[number]: bytes(data[begin:stop]) for number, begin, stop in parts}
        self.rows = columns.get("rows", b"")
        self.known = columns.get("known", b"")


class WireTrace(Cut[Trace]):
    """A ``Trace``; each column is a copy of its own, so that it holds no other bytes and is aligned."""

    def __init__(self, head: Trace, columns: Mapping[str, Any], experts: WireExperts | None = None) -> None:
        self.head = head
        self._experts = experts
        self.prompt_ids = columns.get("prompt_ids", b"")
        self.response_ids = columns.get("response_ids", b"")
        self.loss_mask = columns.get("loss_mask", b"")
        self.logprobs = columns.get("logprobs", b"")

    def HasField(self, name: str) -> bool:
        return super().HasField(name) or (name == "routed_experts" and self._experts is not None)

    @property
    def routed_experts(self) -> WireExperts | TraceExperts:
        return self.head.routed_experts if self._experts is None else self._experts


def read_trace(data: memoryview, start: int, end: int) -> Trace:
    """A ``Trace``, whose columns come first in what the mesh writes; protobuf reads what others may write."""
    head, parts = _split(data, start, end, _COLUMNS, in_front=True)
    experts: WireExperts | None = None
    if len(head) >= _LARGE_BYTES:
        view = memoryview(head)
        more, found = _split(view, 0, len(head), (_EXPERTS,))
        if len(found) == 1:
            _, begin, stop = found[0]
            head, experts = more, WireExperts(view, begin, stop)
    rest = Trace.FromString(head)
    if rest.prompt_ids or rest.response_ids or rest.loss_mask or rest.logprobs:
        return Trace.FromString(bytes(data[start:end]))
    columns = {_COLUMNS[number]: bytes(data[begin:stop]) for number, begin, stop in parts}
    return WireTrace(rest, columns, experts)  # type: ignore[return-value]


def _split(
    data: memoryview, pos: int, end: int, apart: Any, *, in_front: bool = False
) -> tuple[bytes, list[Part]]:
    """The fields ``apart`` as parts, and all others as one message; ``in_front``: look for those before any other only.

    Raises DecodeError where the bytes are no message.
    """
    try:
        return _cut(data, pos, end, apart, in_front)
    except IndexError:
        raise DecodeError("a number that does not end") from None


def _cut(data: memoryview, pos: int, end: int, apart: Any, in_front: bool) -> tuple[bytes, list[Part]]:
    head: list[memoryview] = []
    parts: list[Part] = []
    run = pos
    while pos < end:
        begin = pos
        # Most numbers are one byte, and a call costs more than all else here.
        tag = data[pos]
        pos += 1
        if tag >= 0x80:
            tag, pos = _varint(data, begin)
        number, kind = tag >> 3, tag & 7
        if in_front and number not in apart:
            break
        if kind == _LEN:
            size = data[pos]
            pos += 1
            if size >= 0x80:
                size, pos = _varint(data, pos - 1)
            if number in apart:
                if run < begin:
                    head.append(data[run:begin])
                run = pos + size
                parts.append((number, pos, run))
            pos += size
        elif kind == _VARINT:
            if data[pos] < 0x80:
                pos += 1
            else:
                _, pos = _varint(data, pos)
        elif kind in _FIXED_BYTES:
            pos += _FIXED_BYTES[kind]
        else:
            raise DecodeError(f"a field of wire type {kind}")
        if pos > end:
            raise DecodeError("a field ends behind its message")
    if run < end:
        head.append(data[run:end])
    return b"".join(head), parts


def _varint(data: memoryview, pos: int) -> tuple[int, int]:
    """The number at ``pos``, and the place behind it."""
    try:
        value = data[pos]
        if value < 0x80:
            return value, pos + 1
        value &= 0x7F
        for shift in range(7, 70, 7):
            pos += 1
            byte = data[pos]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, pos + 1
    except IndexError:
        pass
    raise DecodeError("a number that does not end")
