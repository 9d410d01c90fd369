"""The client: tasks toward the scheduler, trajectories from the reconstructor."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import grpc

from . import limits
from .arguments import end_of, message_of, seconds
from .captures import CaptureCalls
from .certificates import File, Security, security
from .channel import open_channel
from .errors import Aborted, Cancelled, DeadlineExceeded, PolarError, Unavailable
from .gen.polar.common.v1.session_pb2 import Session
from .gen.polar.common.v1.task_pb2 import TaskSpec
from .gen.polar.reconstructor.v1.reconstructor_service_pb2 import AckTrajectoriesResponse
from .gen.polar.reconstructor.v1.reconstructor_service_pb2_grpc import TrajectoryServiceStub
from .gen.polar.scheduler.v1 import scheduler_service_pb2 as rollout
from .http_calls import HttpCalls
from .http_stream import Transport, http_stream_method
from .leader import Leader
from .reader import Ended, Reader
from .retry import Backoff, call
from .specs import task_spec, task_specs
from .stream import TrajectoryStream
from .trajectory_calls import Streams, TrajectoryCalls
from .wire import ACK_PATH, grpc_stream_method
from .words import value_of

T = TypeVar("T")


class Client(TrajectoryCalls, CaptureCalls):
    """A trainer's way to the mesh. Thread-safe; one a process is enough. Use it in ``with``, or close it.

    Every method takes ``timeout_s``, the seconds for the call with all its retries, and raises a
    ``polar_mesh.errors.PolarError`` otherwise. All calls are safe to repeat, and the client does so itself when a
    connection breaks or the server asks for it. An argument that no request takes, a negative number say, is named by a
    ValueError or TypeError before any call.

    Args:
        rollout_url: ``http://host:port`` of the scheduler; ``https://`` for TLS. Several, of which one leads, in a list.
        trajectory_url: the same of the reconstructor.
        timeout_s: Default for all calls but ``wait``, ``watch`` and ``stream``.
        reconnect_s: Seconds that ``watch``, ``wait`` and ``stream`` try to reach a server that went away.
        ca: File of the authority of the mesh's certificates, in PEM; default: ``$POLAR_CA_FILE``, else the system's.
        cert: File of the certificate that is shown where the mesh asks for one; default: ``$POLAR_CERT_FILE``.
        key: Its key; default: ``$POLAR_KEY_FILE``. Files that are renewed are used from the next call or connection on.
        credentials: In place of ``ca``, ``cert`` and ``key``, for gRPC calls.
        tls: The same for ``stream`` over HTTP. Where there are credentials alone, it goes by gRPC.
        token: Access token, where the mesh asks for one; default: ``$POLAR_TOKEN``.
        transport: What ``stream`` and its acknowledgements go by: ``http``, for a fraction of the CPU, or ``grpc`` as all
            other calls.
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
        self._timeout_s = timeout_s
        self._reconnect_s = seconds("reconnect_s", reconnect_s)
        self._closed = threading.Event()
        self._streams: Streams[TrajectoryStream] = Streams()
        urls = rollout_urls(rollout_url)
        secure = security((trajectory_url, *urls), Security(credentials, tls), ca, cert, key)
        self._channels = [open_channel(url, secure, token) for url in (trajectory_url, *urls)]
        self._trajectories = TrajectoryServiceStub(self._channels[0])
        by_http = http_stream_method(trajectory_url, transport, secure, token)
        self._open_stream = by_http or grpc_stream_method(self._channels[0])
        self._http = HttpCalls(trajectory_url, secure, token)
        by_grpc = self._trajectories.AckTrajectories
        self._ack_call = by_grpc if by_http is None else self._http.method(ACK_PATH, AckTrajectoriesResponse)
        self._rollout = Leader(self._channels[1:])

    def submit(
        self, task: Mapping[str, Any] | TaskSpec, *, request_id: str = "", timeout_s: float | None = None
    ) -> rollout.SubmitTaskResponse:
        """Submit a task; answers when it is durable, with the task and its session ids by sample index.

        ``task`` is a TaskSpec or a mapping with its field names (see ``polar_mesh.specs.task_spec``). A retry with
        the same ``request_id`` (default: the task id) and content returns the first answer.

        Raises:
            InvalidArgument: all faults in ``fields``.
            AlreadyExists, ResourceExhausted, FailedPrecondition: see the proto.
        """
        spec = task if isinstance(task, TaskSpec) else task_spec(task)
        request = message_of(rollout.SubmitTaskRequest, spec=spec, request_id=request_id)
        return self._call(self._rollout.SubmitTask, request, timeout_s)

    def submit_many(
        self,
        tasks: Sequence[Mapping[str, Any] | TaskSpec],
        *,
        request_ids: Sequence[str] | None = None,
        timeout_s: float | None = None,
    ) -> list[rollout.SubmitTaskResponse]:
        """Submit up to 1000 tasks at once, all of them or none; answers in their order when all are durable.

        Args:
            tasks: Each as for ``submit``.
            request_ids: One for each task; default: the task ids.

        Raises:
            ValueError: not as many request ids as tasks.
            InvalidArgument, AlreadyExists, ResourceExhausted, FailedPrecondition: see the proto.
        """
        ids = [""] * len(tasks) if request_ids is None else request_ids
        requests = [
            message_of(rollout.SubmitTaskRequest, spec=spec, request_id=one)
            for spec, one in zip(task_specs(tasks), ids, strict=True)
        ]
        request = rollout.SubmitTasksRequest(tasks=requests)
        return list(self._call(self._rollout.SubmitTasks, request, timeout_s).tasks)

    def get_task(self, task_id: str, *, timeout_s: float | None = None) -> rollout.Task:
        """One task and its progress. Raises NotFound."""
        request = message_of(rollout.GetTaskRequest, task_id=task_id)
        return self._call(self._rollout.GetTask, request, timeout_s).task

    def list_sessions(self, task_id: str, *, timeout_s: float | None = None) -> list[Session]:
        """All sessions of a task by sample index. Raises NotFound."""
        sessions: list[Session] = []
        token = ""
        while True:
            request = message_of(
                rollout.ListSessionsRequest, task_id=task_id, page_size=limits.PAGE_SIZE, page_token=token
            )
            page = self._call(self._rollout.ListSessions, request, timeout_s)
            sessions.extend(page.sessions)
            token = page.next_page_token
            if not token:
                return sessions

    def get_session(
        self, session_id: str, *, timeout_s: float | None = None
    ) -> rollout.GetSessionResponse:
        """One session with all its attempts and, where it waits, why (``waiting``). Raises NotFound."""
        request = message_of(rollout.GetSessionRequest, session_id=session_id)
        return self._call(self._rollout.GetSession, request, timeout_s)

    def cancel(
        self, task_id: str, *, ahead: bool = False, timeout_s: float | None = None
    ) -> rollout.Task:
        """End all sessions of a task that have not ended; answers when that is committed.

        With ``ahead`` also where there is no such task yet: a submit within the next hour is refused.

        Raises:
            NotFound: no such task, without ``ahead``.
        """
        request = message_of(rollout.CancelTaskRequest, task_id=task_id, ahead=ahead)
        return self._call(self._rollout.CancelTask, request, timeout_s).task

    def cancel_session(self, session_id: str, *, timeout_s: float | None = None) -> Session:
        """End one session; answers when that is committed. Raises NotFound."""
        request = message_of(rollout.CancelSessionRequest, session_id=session_id)
        return self._call(self._rollout.CancelSession, request, timeout_s).session

    def retry(
        self, task_id: str, *, only: str = "infrastructure", timeout_s: float | None = None
    ) -> list[str]:
        """Give ended sessions of a task new attempts; returns their ids. Earlier attempts are kept.

        Args:
            only: ``infrastructure``, ``failed`` (otherwise than completed or cancelled) or ``missing`` (without a
                trajectory).

        Raises:
            NotFound: no such task.
            ValueError: another ``only``.
        """
        which = value_of(rollout.RetryOnly, "RETRY_ONLY_", only)
        request = message_of(rollout.RetrySessionsRequest, task_id=task_id, only=which)
        return list(self._call(self._rollout.RetrySessions, request, timeout_s).session_ids)

    def list_queues(self, *, timeout_s: float | None = None) -> list[rollout.Queue]:
        """The queues that the topology names or that are in use, by name."""
        return list(self._call(self._rollout.ListQueues, rollout.ListQueuesRequest(), timeout_s).queues)

    def drain(self, node_id: str, *, undo: bool = False, timeout_s: float | None = None) -> rollout.Node:
        """Keep new sessions away from a node, or with ``undo`` let them come again. Raises NotFound."""
        request = message_of(rollout.DrainNodeRequest, node_id=node_id, undo=undo)
        return self._call(self._rollout.DrainNode, request, timeout_s).node

    def watch(self, task_id: str, *, timeout_s: float | None = None) -> Iterator[rollout.WatchTaskResponse]:
        """Every change of a task's sessions, first their present state; ends when all have ended.

        Goes on by itself when the connection breaks; a state that was given out already is not repeated.

        Raises:
            NotFound: no such task.
            DeadlineExceeded: ``timeout_s`` seconds are over (default: no limit).
            Unavailable: the server could not be reached for ``reconnect_s`` seconds.
        """
        end = end_of(timeout_s)
        seen: dict[str, Session] = {}
        for change in self._changes(task_id, end):
            if is_news(change, seen):
                yield change

    def wait(self, task_id: str, *, timeout_s: float | None = None) -> rollout.Task:
        """Wait until all sessions of a task have ended. Errors as ``watch``."""
        for _ in self.watch(task_id, timeout_s=timeout_s):
            pass
        return self.get_task(task_id)

    def list_tasks(self, *, timeout_s: float | None = None) -> list[rollout.Task]:
        """All tasks that the mesh knows, newest first, those that are over behind them."""
        tasks: dict[str, rollout.Task] = {}
        token = ""
        while True:
            request = rollout.ListTasksRequest(page_size=limits.PAGE_SIZE, page_token=token)
            page = self._call(self._rollout.ListTasks, request, timeout_s)
            # One that is archived between two pages comes twice.
            tasks.update((one.task_id, one) for one in page.tasks)
            token = page.next_page_token
            if not token:
                return list(tasks.values())

    def close(self) -> None:
        """End all streams and connections; calls in flight raise Cancelled."""
        self._closed.set()
        for stream in self._streams:
            stream.close()
        self._http.close()
        for channel in self._channels:
            channel.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client stays in the process that made it: make one in each")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self, method: Callable[..., T], request: object, timeout_s: float | None, gone: T | None = None
    ) -> T:
        self._check_open()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        return call(lambda left_s: method(request, timeout=left_s), limit_s, self._closed, gone)

    def _changes(self, task_id: str, end: float) -> Iterator[rollout.WatchTaskResponse]:
        """The messages of a watch, over as many connections as it takes."""
        backoff = Backoff(self._reconnect_s, self._closed)
        cursor = ""
        while True:
            self._check_open()
            request = message_of(rollout.WatchTaskRequest, task_id=task_id, resume_cursor=cursor)
            reader: Reader[rollout.WatchTaskResponse] = Reader(
                self._rollout.WatchTask(request), limits.STREAM_SILENCE_S
            )
            try:
                while (left_s := end - time.monotonic()) > 0:
                    try:
                        change = reader.get(left_s)
                    except Ended:
                        check_ended(self.get_task(task_id, timeout_s=last_call_s(left_s)))
                        return
                    backoff.reset()
                    if change is not None:
                        cursor = change.cursor
                        yield change
            except PolarError as error:
                watch_failed(error, self._rollout)
                backoff.pause(error, end)
            finally:
                reader.cut()
            if time.monotonic() >= end:
                raise not_ended(task_id)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise Cancelled("the client is closed", code="CANCELLED")


def rollout_urls(given: str | Sequence[str]) -> list[str]:
    """One or several. Raises ValueError for none."""
    urls = [given] if isinstance(given, str) else list(given)
    if not urls:
        raise ValueError("rollout_url: no address")
    return urls


def is_news(change: rollout.WatchTaskResponse, seen: dict[str, Session]) -> bool:
    """Whether it tells a state that was not given out yet; notes it."""
    session = change.session
    if not change.HasField("session") or seen.get(session.session_id) == session:
        return False
    seen[session.session_id] = session
    return True


def check_ended(task: rollout.Task) -> None:
    """Raises where its watch was ended before it, or it was retried since: it is to be watched again."""
    if not task.HasField("end_time"):
        raise Aborted("the watch has ended, and the task goes on", code="ABORTED")


def last_call_s(left_s: float) -> float:
    """Seconds for the question whether a task has ended whose watch has, in a wait that is over in ``left_s``."""
    return max(min(left_s, limits.CALL_S), limits.HAND_OVER_S)


def watch_failed(error: PolarError, leader: Leader) -> None:
    """The server drops a watcher that is too slow; what it missed is in the next watch's first messages."""
    if isinstance(error, Unavailable):
        leader.turn()
    error.retryable |= isinstance(error, (Aborted, DeadlineExceeded))


def not_ended(task_id: str) -> DeadlineExceeded:
    """The time for a watch is over."""
    return DeadlineExceeded(f"task {task_id} has not ended in the time given", code="DEADLINE_EXCEEDED")
