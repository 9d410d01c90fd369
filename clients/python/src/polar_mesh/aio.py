"""The client for asyncio: what ``polar_mesh.Client``, ``PolicyClient`` and ``EvaluatorClient`` do, as coroutines.

    async with polar_mesh.aio.Client("http://127.0.0.1:8080", "http://127.0.0.1:8070") as client:
        await client.submit({"task_id": "t-1", "instruction": "...", "num_samples": 8, "harness": {"name": "pi"}})
        async with client.stream("trainer") as stream:
            async for batch in stream:
                await train(batch.trajectories)
                await stream.ack([batch])

Requests and answers are made and read by the methods of those classes; see there for arguments and errors.
"""

from __future__ import annotations

import functools
import json
import math
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from . import client as blocking
from . import captures, limits, policy
from .aio_connected import Connected
from .aio_evaluator import EvaluatorClient
from .aio_stream import AioReader, TrajectoryStream, pause
from .arguments import end_of, from_one, message_of, seconds
from .batches import Batch
from .certificates import File, Security, security
from .channel import open_aio_channel
from .errors import PolarError
from .filters import Filter
from .gen.polar.common.v1.session_pb2 import Session
from .gen.polar.llm_proxy.v1.policy_service_pb2_grpc import PolicyServiceStub
from .gen.polar.reconstructor.v1 import reconstructor_service_pb2 as trajectories
from .gen.polar.reconstructor.v1.reconstructor_service_pb2_grpc import TrajectoryServiceStub
from .gen.polar.scheduler.v1 import scheduler_service_pb2 as rollout
from .http_stream import Transport, http_stream_method
from .in_thread import InThread
from .leader import AioLeader
from .ledger import Delivery
from .reader import Ended
from .retry import Backoff
from .trajectory_calls import Layout, Streams, stream_request
from .wire import grpc_stream_method
from .words import value_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")
    S = TypeVar("S")

R = TypeVar("R")

__all__ = ["Client", "EvaluatorClient", "PolicyClient", "TrajectoryStream"]


class _Needed(BaseException):
    """A method has come to a call that is not answered yet."""

    def __init__(self, *call: Any) -> None:
        self.call = call


class _Run:
    """Stands for a client while one of its methods runs: calls are answered in order, and the next one ends the run."""

    def __init__(self, kind: type, client: Connected) -> None:
        self._kind = kind
        self._client = client
        self.answers: list[Any] = []
        self.asked = 0

    def _call(
        self, method: Any, request: object, timeout_s: float | None = None, gone: object = None
    ) -> Any:
        self.asked += 1
        if self.asked > len(self.answers):
            raise _Needed(method, request, timeout_s, gone)
        return self.answers[self.asked - 1]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kind, name, None)
        return functools.partial(method, self) if callable(method) else getattr(self._client, name)


def _awaited(
    kind: type, method: Callable[Concatenate[S, P], R]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method of a client, of which all calls are awaited: it runs to its first call, then again with the answer."""

    @functools.wraps(method)
    async def run(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        state = _Run(kind, self)
        while True:
            state.asked = 0
            try:
                return method(state, *args, **kwargs)  # type: ignore[arg-type]
            except _Needed as needed:
                call = needed.call
            state.answers.append(await self._call(*call))

    return run  # type: ignore[return-value]


class Client(Connected):
    """``polar_mesh.Client`` for asyncio, with the same arguments; made and used in one event loop.

    Use it in ``async with``, or close it with ``aclose``.
    """

    def __init__(
        self,
        rollout_url: str | Sequence[str] = "http://127.0.0.1:8080",
        trajectory_url: str = "http://127.0.0.1:8070",
        *,
        timeout_s: float = limits.CALL_S,
        reconnect_s: float = limits.RECONNECT_S,
        credentials: grpc.ChannelCredentials | None = None,
        tls: ssl.SSLContext | None = None,
        ca: File = None,
        cert: File = None,
        key: File = None,
        token: str | None = None,
        transport: Transport = "http",
    ) -> None:
        super().__init__(timeout_s)
        self._reconnect_s = seconds("reconnect_s", reconnect_s)
        self._streams: Streams[TrajectoryStream] = Streams()
        urls = blocking.rollout_urls(rollout_url)
        secure = security((trajectory_url, *urls), Security(credentials, tls), ca, cert, key)
        self._channels = [open_aio_channel(url, secure, token) for url in (trajectory_url, *urls)]
        self._trajectories = TrajectoryServiceStub(self._channels[0])
        by_http = http_stream_method(trajectory_url, transport, secure, token)
        by_grpc = grpc_stream_method(self._channels[0])
        self._open_stream = by_grpc if by_http is None else lambda request: InThread(by_http(request))
        self._ack_call = self._trajectories.AckTrajectories
        self._rollout = AioLeader(self._channels[1:])

    submit = _awaited(blocking.Client, blocking.Client.submit)
    submit_many = _awaited(blocking.Client, blocking.Client.submit_many)
    get_task = _awaited(blocking.Client, blocking.Client.get_task)
    list_tasks = _awaited(blocking.Client, blocking.Client.list_tasks)
    list_sessions = _awaited(blocking.Client, blocking.Client.list_sessions)
    get_session = _awaited(blocking.Client, blocking.Client.get_session)
    cancel = _awaited(blocking.Client, blocking.Client.cancel)
    cancel_session = _awaited(blocking.Client, blocking.Client.cancel_session)
    retry = _awaited(blocking.Client, blocking.Client.retry)
    open_session = _awaited(blocking.Client, blocking.Client.open_session)
    renew_session = _awaited(blocking.Client, blocking.Client.renew_session)
    close_session = _awaited(blocking.Client, blocking.Client.close_session)
    capture = captures.capture
    list_queues = _awaited(blocking.Client, blocking.Client.list_queues)
    drain = _awaited(blocking.Client, blocking.Client.drain)
    ack = _awaited(blocking.Client, blocking.Client.ack)
    nack = _awaited(blocking.Client, blocking.Client.nack)
    seek = _awaited(blocking.Client, blocking.Client.seek)
    delete_consumer = _awaited(blocking.Client, blocking.Client.delete_consumer)
    list_consumers = _awaited(blocking.Client, blocking.Client.list_consumers)
    get_trajectory = _awaited(blocking.Client, blocking.Client.get_trajectory)
    _ack = _awaited(blocking.Client, blocking.Client._ack)
    _nack = _awaited(blocking.Client, blocking.Client._nack)

    async def export_session(
        self, session_id: str, kind: str = "messages", *, attempt: int | None = None, timeout_s: float | None = None
    ) -> list[dict[str, Any]]:
        """As ``polar_mesh.Client.export_session``."""
        which = value_of(trajectories.ExportKind, "EXPORT_KIND_", kind)
        request = message_of(
            trajectories.ExportSessionRequest,
            session_id=session_id,
            kind=which,
            attempt=from_one("attempt", attempt),
        )

        async def lines(request: object, timeout: float | None) -> list[str]:
            reader: AioReader[trajectories.ExportSessionResponse] = AioReader(
                self._trajectories.ExportSession(request, timeout=timeout), math.inf
            )
            return [one.line for one in await reader.all(limits.STREAM_SILENCE_S)]

        return [json.loads(line) for line in await self._call(lines, request, timeout_s)]

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
        """As ``polar_mesh.Client.stream``."""
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

    async def watch(
        self, task_id: str, *, timeout_s: float | None = None
    ) -> AsyncIterator[rollout.WatchTaskResponse]:
        """As ``polar_mesh.Client.watch``."""
        end = end_of(timeout_s)
        seen: dict[str, Session] = {}
        backoff = Backoff(self._reconnect_s)
        cursor = ""
        while True:
            self._check_open()
            request = message_of(rollout.WatchTaskRequest, task_id=task_id, resume_cursor=cursor)
            reader: AioReader[rollout.WatchTaskResponse] = AioReader(
                self._rollout.stub.WatchTask(request), limits.STREAM_SILENCE_S
            )
            try:
                while (left_s := end - time.monotonic()) > 0:
                    try:
                        change = await reader.get(left_s)
                    except Ended:
                        limit_s = blocking.last_call_s(left_s)
                        blocking.check_ended(await self.get_task(task_id, timeout_s=limit_s))
                        return
                    backoff.reset()
                    if change is not None:
                        cursor = change.cursor
                        if blocking.is_news(change, seen):
                            yield change
            except PolarError as error:
                blocking.watch_failed(error, self._rollout)
                if await pause(self._closed, min(backoff.delay(error), end - time.monotonic())):
                    raise
            finally:
                reader.cut()
            if time.monotonic() >= end:
                raise blocking.not_ended(task_id)

    async def wait(self, task_id: str, *, timeout_s: float | None = None) -> rollout.Task:
        """As ``polar_mesh.Client.wait``."""
        async for _ in self.watch(task_id, timeout_s=timeout_s):
            pass
        return await self.get_task(task_id)

    async def aclose(self) -> None:
        """End all streams and connections; calls in flight raise Cancelled."""
        for stream in self._streams:
            await stream.aclose()
        await super().aclose()


class _Consumer:
    """The calls of one consumer."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def ack(
        self, batch_ids: Sequence[int], seeks: int | None, timeout_s: float | None
    ) -> trajectories.AckTrajectoriesResponse:
        return await self._client._ack(self._name, batch_ids, seeks, timeout_s)

    async def nack(
        self, given: Sequence[Delivery], delay_s: float, reason: str, timeout_s: float | None
    ) -> None:
        await self._client._nack(self._name, given, delay_s, reason, timeout_s)


class PolicyClient(Connected):
    """``polar_mesh.PolicyClient`` for asyncio, with the same arguments; made and used in one event loop."""

    def __init__(
        self,
        proxy_url: str = "http://127.0.0.1:8081",
        *,
        timeout_s: float = limits.CALL_S,
        credentials: grpc.ChannelCredentials | None = None,
        ca: File = None,
        cert: File = None,
        key: File = None,
        token: str | None = None,
    ) -> None:
        super().__init__(timeout_s)
        secure = security([proxy_url], Security(credentials, None), ca, cert, key)
        self._channels = [open_aio_channel(proxy_url, secure, token)]
        self._policy = PolicyServiceStub(self._channels[0])

    publish_version = _awaited(policy.PolicyClient, policy.PolicyClient.publish_version)
    get_policy = _awaited(policy.PolicyClient, policy.PolicyClient.get_policy)
    resume = _awaited(policy.PolicyClient, policy.PolicyClient.resume)
    _pause = _awaited(policy.PolicyClient, policy.PolicyClient._pause)

    @asynccontextmanager
    async def paused(
        self, mode: policy.Mode = "drain", *, timeout_s: float = 60, ttl_s: float = 600
    ) -> AsyncIterator[policy.Pause]:
        """As ``polar_mesh.PolicyClient.paused``, in ``async with``."""
        request = policy.pause_request(mode, timeout_s, ttl_s)
        pause: policy.Pause | None = None
        try:
            pause = await self._pause(request, timeout_s)
            yield pause
            behind = await self.resume(request.pause_id, **pause.version)
        except BaseException as error:
            if pause is not None:
                await self.resume(request.pause_id)
            elif not isinstance(error, PolarError):
                with suppress(PolarError):
                    await self.resume(request.pause_id)
            raise
        pause.check_end(behind)
