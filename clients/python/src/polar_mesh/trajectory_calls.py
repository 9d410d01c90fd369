"""The client's calls toward the reconstructor: the stream, its consumers, single trajectories."""

from __future__ import annotations

import json
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, Generic, Literal, TypeVar

from . import limits
from .arguments import from_one, message_of, named
from .batches import Batch, Trajectory, read_trajectory
from .filters import Filter
from .gen.polar.reconstructor.v1 import reconstructor_service_pb2 as trajectories
from .gen.polar.reconstructor.v1.reconstructor_service_pb2_grpc import TrajectoryServiceStub
from .ledger import Delivery
from .reader import Reader
from .stream import TrajectoryStream
from .words import value_of

T = TypeVar("T")


#: How batches hold their traces: each with its own arrays, or each column one array over all of them.
Layout = Literal["traces", "columns"]
_LAYOUTS = {"traces": trajectories.LAYOUT_TRACES, "columns": trajectories.LAYOUT_COLUMNS}


def stream_request(
    consumer: str,
    *,
    max_unacked: int,
    max_unacked_tokens: int,
    task_id: str | None,
    shared: bool,
    filter: Filter | None,
    message_tokens: int,
    layout: Layout,
) -> trajectories.StreamTrajectoriesRequest:
    """What opens a stream; see ``TrajectoryCalls.stream``."""
    if filter is not None and not isinstance(filter, Filter):
        raise TypeError(f"filter must be a polar_mesh.Filter, not {type(filter).__name__}")
    if layout not in _LAYOUTS:
        raise ValueError(f"layout: {layout!r} is none of {', '.join(_LAYOUTS)}")
    return message_of(
        trajectories.StreamTrajectoriesRequest,
        consumer=consumer,
        max_unacked=max_unacked,
        max_unacked_tokens=max_unacked_tokens,
        task_id=task_id or "",
        shared=shared,
        filter=filter.message() if filter else None,
        message_tokens=message_tokens,
        layout=_LAYOUTS[layout],
    )


def nack_request(
    consumer: str, given: Sequence[Delivery], delay_s: float, reason: str
) -> trajectories.NackTrajectoriesRequest:
    """What gives batches back after ``delay_s`` seconds."""
    request = message_of(
        trajectories.NackTrajectoriesRequest,
        consumer=consumer,
        batch_ids=[one.batch_id for one in given],
        delivery_counts=[one.count for one in given],
        reason=reason,
    )
    with named("delay_s"):
        request.delay_ms = round(delay_s * 1000)
    return request


def seek_request(
    consumer: str, to: int | datetime | Literal["oldest", "newest"]
) -> trajectories.SeekConsumerRequest:
    """What sets a consumer's place; see ``TrajectoryCalls.seek``."""
    request = message_of(trajectories.SeekConsumerRequest, consumer=consumer)
    if isinstance(to, datetime):
        request.time.FromDatetime(to.astimezone(timezone.utc))
    elif isinstance(to, str):
        request.target = value_of(trajectories.SeekTarget, "SEEK_TARGET_", to)
    else:
        with named("to"):
            request.batch_id = to
    return request


class Streams(Generic[T]):
    """Those of a client that somebody has. Thread-safe: a set takes nothing while another thread goes through it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: weakref.WeakSet[T] = weakref.WeakSet()

    def add(self, stream: T) -> None:
        with self._lock:
            self._known.add(stream)

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            return iter(list(self._known))


class TrajectoryCalls:
    """The part of ``Client`` that asks the reconstructor."""

    _trajectories: TrajectoryServiceStub
    _open_stream: Callable[[trajectories.StreamTrajectoriesRequest], Any]
    _ack_call: Callable[..., trajectories.AckTrajectoriesResponse]
    _streams: Streams[TrajectoryStream]
    _reconnect_s: float

    def stream(
        self,
        consumer: str,
        *,
        max_unacked: int = 16,
        max_unacked_tokens: int = 0,
        task_id: str | None = None,
        shared: bool = False,
        filter: Filter | None = None,
        on_dropped: Callable[[Batch], None] | None = None,
        message_tokens: int = limits.MESSAGE_TOKENS,
        layout: Layout = "traces",
    ) -> TrajectoryStream:
        """The batches that the consumer has not acknowledged, oldest first, then new ones as they come.

        Args:
            consumer: Name of the durable cursor, 1 to 32 of ``[a-z0-9-]``; made at first use.
            max_unacked: Batches sent and not yet acknowledged, 1 to 1000; when reached, no more come.
            max_unacked_tokens: The same in token ids; one batch comes in any case. 0: no such limit.
            task_id: Only batches of this task; fixed at the consumer's first use.
            shared: Read the consumer together with other streams that say so, too: each batch goes to one of them.
            filter: What to drop. What is dropped is named, counted (``stream.dropped``) and acknowledged by the stream.
            on_dropped: Called with each batch that is dropped, before it is acknowledged.
            message_tokens: Small batches that are ready come together up to so many token ids; 0: one by one.
            layout: ``columns``: each batch has ``columns``, its traces as one array a column, and makes its ``trajectories``
                when they are asked for. Many short traces cost a fraction so.
        """
        self._check_open()
        request = stream_request(
            consumer,
            max_unacked=max_unacked,
            max_unacked_tokens=max_unacked_tokens,
            task_id=task_id,
            shared=shared,
            filter=filter,
            message_tokens=message_tokens,
            layout=layout,
        )
        stream = TrajectoryStream(
            self._open_stream,
            _Consumer(self, consumer),
            request,
            reconnect_s=self._reconnect_s,
            filter=filter,
            on_dropped=on_dropped,
        )
        self._streams.add(stream)
        return stream

    def ack(self, consumer: str, batch_ids: Sequence[int], *, timeout_s: float | None = None) -> int:
        """Acknowledge batches by id, at most 1000; ``Batch.ack`` is the usual way.

        Returns the id up to which all batches are acknowledged.

        Raises:
            NotFound: no such consumer.
            InvalidArgument: it was never sent one of them; then none is acknowledged.
        """
        answer = self._ack(consumer, batch_ids, None, timeout_s)
        for stream in self._streams:
            # What came after a later seek is to be acknowledged again.
            if stream._request.consumer == consumer and (stream._books.seeks or 0) <= answer.seeks:
                stream._books.acked(batch_ids, answer.floor)
        return answer.floor

    def nack(
        self,
        consumer: str,
        batch_ids: Sequence[int],
        *,
        delay_s: float = 0.0,
        reason: str = "",
        timeout_s: float | None = None,
    ) -> None:
        """Give batches back by id, at most 1000; ``Batch.nack`` is the usual way.

        Args:
            delay_s: Seconds after which they come again, at most a day.
            reason: For people, up to 128 characters; comes back with the batch.

        Raises:
            NotFound, InvalidArgument: as ``ack``.
            ResourceExhausted: 1000 batches of the consumer wait to come again.
        """
        self._nack(consumer, [Delivery(one, 0) for one in batch_ids], delay_s, reason, timeout_s)

    def seek(
        self, consumer: str, to: int | datetime | Literal["oldest", "newest"], *, timeout_s: float | None = None
    ) -> int:
        """Set where a consumer goes on; what comes again has ``redelivered`` set. Open streams go on from there.

        Args:
            to: ``oldest``, ``newest``, the id of the first batch that is to come, or the time from which on they were
                stored (local time where it has no zone). Everything before counts as acknowledged.

        Returns the id up to which all batches count as acknowledged.

        Raises:
            NotFound: no such consumer.
            InvalidArgument: reason ``SEEK_OUT_OF_RANGE``: not a place between the oldest kept batch and the end.
            ValueError: another word.
        """
        request = seek_request(consumer, to)
        return self._call(self._trajectories.SeekConsumer, request, timeout_s).floor

    def delete_consumer(self, consumer: str, *, timeout_s: float | None = None) -> None:
        """Forget a consumer; its streams end. Raises NotFound, but not where an earlier try of this call has deleted it."""
        request = message_of(trajectories.DeleteConsumerRequest, consumer=consumer)
        gone = trajectories.DeleteConsumerResponse()
        self._call(self._trajectories.DeleteConsumer, request, timeout_s, gone)

    def list_consumers(self, *, timeout_s: float | None = None) -> list[trajectories.Consumer]:
        """The consumers by name: what is acknowledged, pending, given back and dropped."""
        request = trajectories.ListConsumersRequest()
        return list(self._call(self._trajectories.ListConsumers, request, timeout_s).consumers)

    def get_trajectory(self, session_id: str, *, timeout_s: float | None = None) -> Trajectory:
        """The trajectory of an ended session. Raises NotFound, FailedPrecondition (not ended)."""
        request = message_of(trajectories.GetTrajectoryRequest, session_id=session_id)
        return read_trajectory(self._call(self._trajectories.GetTrajectory, request, timeout_s).trajectory)

    def export_session(
        self, session_id: str, kind: str = "messages", *, attempt: int | None = None, timeout_s: float | None = None
    ) -> list[dict[str, Any]]:
        """What is recorded or built of a session, one object a line of docs/export-format.md.

        Args:
            kind: ``calls``, ``records``, ``summaries``, ``messages``, ``traces`` or ``images`` (see ``image_bytes``).
            attempt: From 1; default: the one that counts.

        Raises:
            NotFound: no such session or attempt.
            ValueError: another ``kind``, or an attempt below 1.
        """
        which = value_of(trajectories.ExportKind, "EXPORT_KIND_", kind)
        request = message_of(
            trajectories.ExportSessionRequest,
            session_id=session_id,
            kind=which,
            attempt=from_one("attempt", attempt),
        )

        def lines(request: object, timeout: float | None) -> list[str]:
            reader: Reader[trajectories.ExportSessionResponse] = Reader(
                self._trajectories.ExportSession(request, timeout=timeout), math.inf
            )
            return [one.line for one in reader.all(limits.STREAM_SILENCE_S)]

        return [json.loads(line) for line in self._call(lines, request, timeout_s)]

    def _ack(
        self,
        consumer: str,
        batch_ids: Sequence[int],
        seeks: int | None,
        timeout_s: float | None = None,
    ) -> trajectories.AckTrajectoriesResponse:
        request = message_of(
            trajectories.AckTrajectoriesRequest, consumer=consumer, batch_ids=batch_ids, seeks=seeks
        )
        return self._call(self._ack_call, request, timeout_s)

    def _nack(
        self,
        consumer: str,
        given: Sequence[Delivery],
        delay_s: float,
        reason: str,
        timeout_s: float | None = None,
    ) -> None:
        request = nack_request(consumer, given, delay_s, reason)
        self._call(self._trajectories.NackTrajectories, request, timeout_s)

    def _call(
        self, method: Callable[..., T], request: object, timeout_s: float | None, gone: T | None = None
    ) -> T:
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError


class _Consumer:
    """The calls of one consumer."""

    def __init__(self, client: TrajectoryCalls, name: str) -> None:
        self._client = client
        self._name = name

    def ack(
        self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None
    ) -> trajectories.AckTrajectoriesResponse:
        return self._client._ack(self._name, batch_ids, seeks, timeout_s)

    def nack(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None
    ) -> None:
        self._client._nack(self._name, given, delay_s, reason, timeout_s)
