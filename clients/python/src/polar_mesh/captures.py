"""Sessions whose harness is here, or anywhere outside the mesh: opened, worked on with the model's address, and closed."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from . import limits
from .arguments import message_of, named
from .errors import InvalidArgument, PolarError
from .gen.polar.common.v1 import session_pb2 as sessions
from .gen.polar.common.v1.session_pb2 import Session
from .gen.polar.scheduler.v1 import external_session_pb2 as external
from .renewal import aio_renewed, renewed
from .specs import task_spec

if TYPE_CHECKING:
    from .aio import Client as AioClient
    from .gen.polar.common.v1.task_pb2 import TaskSpec

#: Characters of why a session failed, as the mesh counts them: by UTF-16.
MESSAGE_CHARS = 2000
#: Nobody but its caller opens a task for one session alone: so long it may take to do so, or to be stopped before.
OPEN_S = 300.0
#: What was set of a session is no end of one.
NO_END = (InvalidArgument, TypeError, ValueError)


@dataclass
class OpenSession:
    """A session that its caller works on. What it sets here is told when the session is closed."""

    session_id: str
    task_id: str
    #: Of the task's samples, from 0.
    sample_index: int
    attempt: int
    #: For clients of OpenAI's APIs; with the key.
    base_url: str
    #: The same without ``/v1``, for clients of Anthropic's and Google's.
    root_url: str
    #: The session's own credential at the LLM proxy.
    api_key: str = field(repr=False)
    #: What harnesses find in their environment of all that: OPENAI_BASE_URL, ANTHROPIC_API_KEY and so on.
    env: dict[str, str] = field(repr=False)
    #: What the task asks for.
    instruction: str
    #: When it ends without a reward, unless it is closed before.
    expire_time: datetime
    #: None: it has none, or its task's evaluator gives it.
    reward: float | None = None
    #: Rewards of single traces, beside ``reward``: by a call of each, whose id is the header polar-call-id of its reply.
    trace_rewards: dict[str, float] = field(default_factory=dict)
    #: Why it failed; None where it did not.
    failure: str | None = None


def request_of(task_id: str, lease_s: float | None) -> external.OpenSessionRequest:
    """What opens a session. The key follows from its random id, by which a repeated call gets the same session."""
    request = message_of(external.OpenSessionRequest, task_id=task_id, request_id=str(uuid.uuid4()))
    if lease_s is not None:
        with named("lease_s"):
            request.lease.FromTimedelta(timedelta(seconds=lease_s))
            if not limits.LEASE_MIN_S <= lease_s <= limits.LEASE_MAX_S:
                raise ValueError(f"must be {limits.LEASE_MIN_S:g} to {limits.LEASE_MAX_S:g} seconds, not {lease_s}")
    return request


def opened_by(answer: external.OpenSessionResponse) -> OpenSession:
    session = answer.session
    return OpenSession(
        session_id=session.session_id,
        task_id=session.task_id,
        sample_index=session.sample_index,
        attempt=session.attempt,
        base_url=answer.openai_url,
        root_url=answer.base_url,
        api_key=answer.api_key,
        env=dict(answer.env),
        instruction=answer.instruction,
        expire_time=answer.expire_time.ToDatetime(timezone.utc),
    )


def end_of(session: OpenSession) -> external.CloseSessionRequest:
    """What closes a session as it stands."""
    failed = session.failure is not None
    return message_of(
        external.CloseSessionRequest,
        session_id=session.session_id,
        attempt=session.attempt,
        outcome=sessions.OUTCOME_HARNESS_ERROR if failed else sessions.OUTCOME_COMPLETED,
        reward=session.reward,
        message=_told(session.failure) if failed else "",
        trace_rewards=session.trace_rewards,
    )


def _told(failure: object) -> str:
    """As much of it as the mesh takes; what no message can carry is replaced."""
    try:
        units = str(failure).encode("utf-16-le", "replace")
    except Exception:
        return type(failure).__name__
    return units[: 2 * MESSAGE_CHARS].decode("utf-16-le", "ignore")


def capture_task(
    task_id: str | None, model: str | None, instruction: str, num_samples: int, run_s: float
) -> tuple[str, TaskSpec | None]:
    """The task's id, and the task where it is to be submitted first."""
    if task_id is not None and model is None:
        return task_id, None
    own_id = task_id or f"capture-{uuid.uuid4().hex}"
    # Who captures one session opens it once, and at once.
    alone = {"max_attempts": 1, "budgets": {"queue": OPEN_S, "run": run_s}}
    task = {
        "task_id": own_id,
        "instruction": instruction or "What its caller does.",
        "num_samples": num_samples,
        "harness": {"name": "external", "model_name": model or ""},
        "builder": {"strategy": "prefix_merging"},
        **({"budgets": {"run": run_s}} if task_id is not None else alone),
    }
    return own_id, task_spec(task)


def note(session: OpenSession, error: Exception) -> None:
    """It failed by what its caller's code has raised: what that would have been worth is not known."""
    try:
        session.failure = f"{type(error).__name__}: {error}"
    except Exception:
        session.failure = type(error).__name__
    session.reward, session.trace_rewards = None, {}


class CaptureCalls:
    """The client's calls for sessions that run elsewhere; see ``Client``."""

    _call: Any
    _rollout: Any
    submit: Any
    cancel: Any
    cancel_session: Any

    def open_session(self, task_id: str, *, lease_s: float | None = None, timeout_s: float | None = None) -> OpenSession:
        """Begin the next session of a task of harness ``external``; the caller works on it, and closes it.

        Args:
            lease_s: 1 to 3600 seconds, else a ValueError. Where the caller does not call ``renew_session`` within them, again
                and again, the session is lost, and waits to be opened again; default: it ends with its time alone.

        Raises:
            NotFound: no such task.
            FailedPrecondition: none of its sessions waits (NO_SESSION_WAITS).
            InvalidArgument: the mesh starts the harness of that task itself.
            Unavailable: no node has room for it (NO_NODE).
        """
        return opened_by(self._call(self._rollout.OpenSession, request_of(task_id, lease_s), timeout_s))

    def renew_session(self, session: OpenSession, *, timeout_s: float | None = None) -> None:
        """Tell that who has a session open with a lease is there; ``capture`` does so by itself.

        Raises:
            FailedPrecondition: it is not open any more (SESSION_CLOSED).
        """
        request = message_of(external.RenewSessionRequest, session_id=session.session_id, attempt=session.attempt)
        self._call(self._rollout.RenewSession, request, timeout_s)

    def close_session(self, session: OpenSession, *, timeout_s: float | None = None) -> Session:
        """Tell how it ended, by its ``reward`` and ``failure``; answers when that is committed.

        Raises:
            FailedPrecondition: it is not open any more (SESSION_CLOSED): its time was over, or it was lost or cancelled.
            InvalidArgument: a reward where the task has an evaluator, or one that is none.
        """
        return self._call(self._rollout.CloseSession, end_of(session), timeout_s).session

    @contextmanager
    def capture(
        self,
        task_id: str | None = None,
        *,
        model: str | None = None,
        instruction: str = "",
        num_samples: int = 1,
        run_s: float = 600.0,
        lease_s: float | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[OpenSession]:
        """A session in ``with``: opened, and closed at the end of the block with the ``reward`` that was set.

            for _ in range(8):
                with client.capture("t-1", model="m", num_samples=8) as session:
                    answer = run(session.instruction, OpenAI(base_url=session.base_url, api_key=session.api_key))
                    session.reward = score(answer)

        An exception closes it as failed, without a reward; an interrupt cancels it, and so does a reward that is none.

        Args:
            task_id: The task whose next session it is; default: one for this session alone.
            model: The model's name as the agent knows it. Where it is given, the task is submitted first: one that is
                there with the same arguments is used.
            instruction, num_samples: Of the task that is submitted; its sessions are one group.
            run_s: Seconds that each of its sessions may be open.
            lease_s: 1 to 3600 seconds after which the session is lost where this process has died, and waits to be opened
                again; it is renewed meanwhile, in a thread, or by a task of the event loop, which must not be blocked for so
                long. Default: it ends with its time alone, as ``timeout``.
            timeout_s: Seconds for each call.

        Raises:
            As ``submit``, ``open_session`` and ``close_session``.
        """
        own_id, task = capture_task(task_id, model, instruction, num_samples, run_s)
        # What would be refused then leaves no task that nobody opens.
        request_of(own_id, lease_s)
        if task is not None:
            self.submit(task, timeout_s=timeout_s)
        try:
            session: OpenSession = self.open_session(own_id, lease_s=lease_s, timeout_s=timeout_s)
        except BaseException:
            # Nobody else would open it.
            if task_id is None:
                with suppress(PolarError):
                    self.cancel(own_id, timeout_s=timeout_s)
            raise
        with renewed(lambda left_s: self.renew_session(session, timeout_s=left_s), lease_s):
            try:
                yield session
            except Exception as error:
                note(session, error)
                with suppress(PolarError):
                    self.close_session(session, timeout_s=timeout_s)
                raise
            except BaseException:
                with suppress(PolarError):
                    self.cancel_session(session.session_id, timeout_s=timeout_s)
                raise
            try:
                self.close_session(session, timeout_s=timeout_s)
            except NO_END:
                # That is no verdict on it, and it does not stay open for the rest of its time.
                with suppress(PolarError):
                    self.cancel_session(session.session_id, timeout_s=timeout_s)
                raise


@asynccontextmanager
async def capture(
    self: AioClient,
    task_id: str | None = None,
    *,
    model: str | None = None,
    instruction: str = "",
    num_samples: int = 1,
    run_s: float = 600.0,
    lease_s: float | None = None,
    timeout_s: float | None = None,
) -> AsyncIterator[OpenSession]:
    """As ``polar_mesh.Client.capture``, in ``async with``."""
    own_id, task = capture_task(task_id, model, instruction, num_samples, run_s)
    request_of(own_id, lease_s)
    if task is not None:
        await self.submit(task, timeout_s=timeout_s)
    try:
        session = await self.open_session(own_id, lease_s=lease_s, timeout_s=timeout_s)
    except BaseException:
        if task_id is None:
            with suppress(PolarError):
                await self.cancel(own_id, timeout_s=timeout_s)
        raise
    async with aio_renewed(lambda left_s: self.renew_session(session, timeout_s=left_s), lease_s):
        try:
            yield session
        except Exception as error:
            note(session, error)
            with suppress(PolarError):
                await self.close_session(session, timeout_s=timeout_s)
            raise
        except BaseException:
            with suppress(PolarError):
                await self.cancel_session(session.session_id, timeout_s=timeout_s)
            raise
        try:
            await self.close_session(session, timeout_s=timeout_s)
        except NO_END:
            with suppress(PolarError):
                await self.cancel_session(session.session_id, timeout_s=timeout_s)
            raise
