"""Real servers for the tests, and a link to them that can be cut."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures

import grpc
import numpy as np
from bridge import serve_connect, speaks_http2
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

import polar_mesh
from polar_mesh import batches
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2_grpc as pb_grpc
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import CallSpan, Trace, Trajectory, TrajectoryBatch


def free_port() -> int:
    """Below the ports that the kernel gives to connections, so that it stays free while its server is down."""
    while True:
        port = random.randrange(30_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Server:
    """A server on one port that can be stopped and started again; both of the client's transports are served."""

    def __init__(self, register: Callable[[grpc.Server], None]) -> None:
        self.port = free_port()
        self._register = register
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
        self._register(self._server)
        self.grpc_port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self._front = Front(self.grpc_port, self.port)

    def stop(self) -> None:
        self._front.close()
        self._server.stop(None).wait()


class Trajectories(pb_grpc.TrajectoryServiceServicer):
    """The contract of TrajectoryService for one consumer: unacknowledged batches come again on each new stream."""

    def __init__(self, batches: Sequence[TrajectoryBatch], progress_s: float = 0.2) -> None:
        self.batches = list(batches)
        self.progress_s = progress_s
        self.streams = 0
        #: The one that was streamed last.
        self.consumer = ""
        #: Streams whose client has left.
        self.ended = 0
        self.delivered: list[int] = []
        self.acked: set[int] = set()
        #: What each stream message says, and what each acknowledgement said; None: nothing.
        self.seeks = 0
        self.acked_seeks: list[int | None] = []
        self.ack_failures: list[tuple[grpc.StatusCode, Sequence[Message]]] = []
        self.muted = threading.Event()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def add(self, batch: TrajectoryBatch) -> None:
        with self._changed:
            self.batches.append(batch)
            self._changed.notify_all()

    def StreamTrajectories(self, request, context) -> Iterator[pb.StreamTrajectoriesResponse]:
        sent: set[int] = set()
        with self._lock:
            self.streams += 1
            mine = self.streams
            self.consumer = request.consumer
        # Woken when the client leaves, so that no thread stays.
        context.add_callback(self._left)
        while context.is_active():
            with self._changed:
                if mine != self.streams:
                    abort(context, grpc.StatusCode.ABORTED, "replaced", "STREAM_REPLACED")
                ready = self._ready(request, sent)
                if not ready:
                    self._changed.wait(self.progress_s)
                    ready = self._ready(request, sent)
            if self.muted.is_set():
                continue
            if not ready:
                yield pb.StreamTrajectoriesResponse(seeks=self.seeks)
            for batch in ready:
                sent.add(batch.batch_id)
                marked = TrajectoryBatch()
                marked.CopyFrom(batch)
                marked.redelivered = batch.batch_id in self.delivered
                self.delivered.append(batch.batch_id)
                if request.layout == pb.LAYOUT_COLUMNS:
                    in_columns(marked)
                yield pb.StreamTrajectoriesResponse(batch=marked, seeks=self.seeks)

    def AckTrajectories(self, request, context) -> pb.AckTrajectoriesResponse:
        if self.ack_failures:
            code, details = self.ack_failures.pop(0)
            abort(context, code, "not now", "NATS_UNAVAILABLE", *details)
        with self._changed:
            self.acked_seeks.append(request.seeks if request.HasField("seeks") else None)
            if not request.HasField("seeks") or request.seeks >= self.seeks:
                self.acked.update(request.batch_ids)
            self._changed.notify_all()
            open_ids = [batch.batch_id for batch in self.batches if batch.batch_id not in self.acked]
            last = max(batch.batch_id for batch in self.batches)
            return pb.AckTrajectoriesResponse(floor=min(open_ids) - 1 if open_ids else last, seeks=self.seeks)

    def ListConsumers(self, request, context) -> pb.ListConsumersResponse:
        with self._lock:
            pending = sum(batch.batch_id not in self.acked for batch in self.batches)
            consumers = [pb.Consumer(name=self.consumer, pending=pending)] if self.consumer else []
        return pb.ListConsumersResponse(consumers=consumers)

    def _ready(self, request, sent: set[int]) -> list[TrajectoryBatch]:
        open_batches = [batch for batch in self.batches if batch.batch_id not in self.acked]
        free = request.max_unacked - sum(batch.batch_id in sent for batch in open_batches)
        return [batch for batch in open_batches if batch.batch_id not in sent][: max(free, 0)]

    def _left(self) -> None:
        with self._changed:
            self.ended += 1
            self._changed.notify_all()

    def register(self, server: grpc.Server) -> None:
        pb_grpc.add_TrajectoryServiceServicer_to_server(self, server)


class Garbled(Trajectories):
    """Its first stream says what is no message."""

    def register(self, server: grpc.Server) -> None:
        super().register(server)
        name = pb.DESCRIPTOR.services_by_name["TrajectoryService"].full_name
        stream = grpc.unary_stream_rpc_method_handler(
            self._bytes, request_deserializer=pb.StreamTrajectoriesRequest.FromString
        )
        # What is registered by name comes before what is asked for in order.
        server.add_registered_method_handlers(name, {"StreamTrajectories": stream})

    def _bytes(self, request, context) -> Iterator[bytes]:
        if self.streams == 0:
            self.streams = 1
            yield b"\xff"
        yield from (one.SerializeToString() for one in self.StreamTrajectories(request, context))


def abort(context, code: grpc.StatusCode, message: str, reason: str, *details: Message) -> None:
    """End a call as the mesh does: google.rpc.Status with ErrorInfo in the trailers."""
    info = error_details_pb2.ErrorInfo(reason=reason, domain="polar", metadata={"boundary": "mesh"})
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in (info, *details):
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


def batch(batch_id: int, tokens: int = 8, samples: int = 2) -> TrajectoryBatch:
    """A batch whose ids tell where they are from."""
    trajectories = []
    for index in range(samples):
        ids = np.arange(tokens, dtype="<i4") + batch_id * 1000 + index * 100
        trace = Trace(
            prompt_ids=ids[: tokens // 2].tobytes(),
            response_ids=ids.tobytes(),
            loss_mask=(ids % 2).astype("u1").tobytes(),
            logprobs=(-ids / 7).astype("<f4").tobytes(),
        )
        trajectories.append(
            Trajectory(session_id=f"s-{batch_id}-{index}", sample_index=index, reward=index, traces=[trace])
        )
    return TrajectoryBatch(
        batch_id=batch_id, task_id=f"t-{batch_id}", group_id="g0", trajectories=trajectories
    )


def in_columns(batch: TrajectoryBatch) -> TrajectoryBatch:
    """The same in LAYOUT_COLUMNS."""
    whole, traces = batch.columns, [trace for one in batch.trajectories for trace in one.traces]
    for name in ("prompt_ids", "response_ids", "loss_mask", "logprobs"):
        setattr(whole, name, b"".join(getattr(trace, name) for trace in traces))
    for name, of in (("prompt_offsets", "prompt_ids"), ("response_offsets", "response_ids")):
        lengths = [len(getattr(trace, of)) // 4 for trace in traces]
        setattr(whole, name, np.cumsum([0, *lengths], dtype="<i4").tobytes())
    indexes = [index for index, one in enumerate(batch.trajectories) for _ in one.traces]
    rewards = [one.reward if one.HasField("reward") else np.nan for one in batch.trajectories]
    own = [trace.reward if trace.HasField("reward") else rewards[at] for at, trace in zip(indexes, traces, strict=True)]
    whole.trajectory_indexes = np.array(indexes, "<i4").tobytes()
    whole.rewards = np.array(own, "<f8").tobytes()
    whole.trajectory_rewards = np.array(rewards, "<f8").tobytes()
    whole.policy_versions_min = np.array([one.policy_version_min for one in batch.trajectories], "<i8").tobytes()
    whole.policy_versions_max = np.array([one.policy_version_max for one in batch.trajectories], "<i8").tobytes()
    whole.outcomes = bytes(one.outcome for one in batch.trajectories)
    for trace in traces:
        for name in ("prompt_ids", "response_ids", "loss_mask", "logprobs"):
            trace.ClearField(name)
    batch.details.trajectories.extend(batch.trajectories)
    batch.ClearField("trajectories")
    return batch


def trace(mask: Sequence[int], prompt: int = 2, spans: Sequence[CallSpan] = ()) -> polar_mesh.Trace:
    """A trace as the trainer has it, with this mask; ids and logprobs are made up from their places."""
    ids = np.arange(len(mask), dtype=np.int32)
    loss_mask = np.asarray(mask, dtype=np.uint8)
    logprobs = np.where(loss_mask != 0, -(ids + 1) / 8, 0).astype(np.float32)
    message = Trace(
        prompt_ids=np.arange(100, 100 + prompt, dtype="<i4").tobytes(),
        response_ids=ids.astype("<i4").tobytes(),
        loss_mask=loss_mask.tobytes(),
        logprobs=logprobs.astype("<f4").tobytes(),
        spans=spans,
    )
    return batches.read_trajectory(Trajectory(traces=[message])).traces[0]


def trajectory(
    reward: float | None, traces: Sequence[polar_mesh.Trace], session_id: str | None = None
) -> polar_mesh.Trajectory:
    """A session with these traces."""
    message = Trajectory(session_id=session_id or f"s-{next(_session_numbers)}", reward=reward)
    return dataclasses.replace(batches.read_trajectory(message), traces=tuple(traces))


_session_numbers = itertools.count()


class Link:
    """A TCP relay to a port: the network between client and server."""

    def __init__(self, target: int, port: int = 0) -> None:
        self._target = target
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Every connection ends in the middle of what it carries; new ones are taken."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            # Both ends get a reset; a thread that reads it ends.
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def close(self) -> None:
        # Unlike close() alone this wakes the thread that accepts. It may be closed already.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(near,), daemon=True).start()

    def _take(self, near: socket.socket) -> None:
        self._sockets.append(near)
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        self._sockets.append(far)
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pump, args=(far, near), daemon=True).start()
        _pump(near, far)


class Front(Link):
    """A link to a gRPC server which also answers over HTTP/1.1."""

    def _take(self, near: socket.socket) -> None:
        if speaks_http2(near):
            super()._take(near)
            return
        self._sockets.append(near)
        serve_connect(near, self._target)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for one in (source, sink):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
