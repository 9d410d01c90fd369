"""Policy versions and pauses: the trainer's side of the LLM proxies."""

from __future__ import annotations

import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Literal, TypeVar

import grpc

from . import limits
from .arguments import from_one, message_of, named
from .certificates import File, Security, security
from .channel import open_channel
from .errors import Cancelled, PolarError
from .gen.polar.event.v1 import policy_pb2 as messages
from .gen.polar.llm_proxy.v1 import policy_service_pb2 as pb
from .gen.polar.llm_proxy.v1.policy_service_pb2_grpc import PolicyServiceStub
from .retry import call
from .words import value_of

T = TypeVar("T")

Mode = Literal["drain", "abort_and_retry", "keep"]


class Pause:
    """A pause in progress; ``publish`` names the weights with which calls go on."""

    def __init__(self, policy: messages.Policy, ttl_s: float) -> None:
        self.policy = policy
        self._ttl_s = ttl_s
        self.policy_version: int | None = None
        self.weight_version = ""

    def publish(self, policy_version: int, weight_version: str = "") -> None:
        """Go on with these weights when the pause ends. Raises ValueError for a version below 1."""
        self.policy_version = from_one("policy_version", policy_version)
        self.weight_version = weight_version

    @property
    def version(self) -> dict[str, Any]:
        """What the resume says."""
        return {"policy_version": self.policy_version, "weight_version": self.weight_version}

    def check_end(self, behind: messages.Policy) -> None:
        """Warns where calls went on before the block had ended: what they sampled names the weights of before it.

        The mesh's own word, ``behind`` being its answer to the resume: a pause begins before calls in flight have ended.
        """
        if behind.pauses and behind.pauses[-1].end_ms >= self.policy.pause_expire_ms:
            told = f"the pause ended by itself after ttl_s={self._ttl_s:g}, before its block"
            warnings.warn(f"{told}: model calls met weights in change", RuntimeWarning, stacklevel=4)


def pause_request(mode: Mode, timeout_s: float, ttl_s: float) -> pb.PauseRequest:
    """What begins a pause; a repetition, under the same name, joins it. Raises ValueError or TypeError."""
    which = value_of(messages.PauseMode, "PAUSE_MODE_", mode)
    request = pb.PauseRequest(mode=which, pause_id=f"pause-{uuid.uuid4().hex}")
    with named("timeout_s"):
        request.timeout.FromTimedelta(timedelta(seconds=timeout_s))
    with named("ttl_s"):
        request.ttl.FromTimedelta(timedelta(seconds=ttl_s))
    return request


class PolicyClient:
    """Tells the mesh which weights are served, and holds model calls while they change. Thread-safe.

    Any LLM proxy of the mesh may be asked; what it answers holds for all of them. Every method raises a
    ``polar_mesh.errors.PolarError``.

    Args:
        proxy_url: ``http://host:port`` of an LLM proxy.
        timeout_s: Seconds for a call with all its retries.
        ca, cert, key: Files for TLS, as of ``Client``.
        credentials: In their place.
        token: Access token, where the mesh asks for one; default: ``$POLAR_TOKEN``.
    """

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
        self._timeout_s = timeout_s
        self._closed = threading.Event()
        secure = security([proxy_url], Security(credentials, None), ca, cert, key)
        self._channel = open_channel(proxy_url, secure, token)
        self._policy = PolicyServiceStub(self._channel)

    def publish_version(self, policy_version: int, weight_version: str = "") -> messages.Policy:
        """Set the version that records carry where the engine tells none.

        Raises:
            InvalidArgument: a version below the last.
            AlreadyExists: the last with another ``weight_version``; an equal repetition is none.
        """
        request = message_of(
            pb.PublishVersionRequest, policy_version=policy_version, weight_version=weight_version
        )
        return self._call(self._policy.PublishVersion, request).policy

    def get_policy(self) -> pb.GetPolicyResponse:
        """What holds now, and what each LLM proxy is doing."""
        return self._call(self._policy.GetPolicy, pb.GetPolicyRequest())

    def resume(
        self, pause_id: str = "", *, policy_version: int | None = None, weight_version: str = ""
    ) -> messages.Policy:
        """End a pause (default: whichever is in progress), with new weights if a version is given.

        Raises:
            ValueError: a version below 1.
            InvalidArgument, AlreadyExists: as ``publish_version``.
            FailedPrecondition: another pause is in progress.
        """
        from_one("policy_version", policy_version)
        request = message_of(
            pb.ResumeRequest, pause_id=pause_id, policy_version=policy_version, weight_version=weight_version
        )
        return self._call(self._policy.Resume, request).policy

    @contextmanager
    def paused(self, mode: Mode = "drain", *, timeout_s: float = 60, ttl_s: float = 600) -> Iterator[Pause]:
        """Hold model calls for the length of the block, in which the engines' weights are changed::

            with policy.paused("abort_and_retry") as pause:
                update_engines()
                pause.publish(step, f"step-{step}")

        A block that raises ends the pause too, with the version as it was, and so does one whose version is refused, and
        what breaks off the wait for the pause. One that takes longer than ``ttl_s`` ends with a RuntimeWarning.

        Args:
            mode: What becomes of calls in flight: they end (``drain``), are given up and asked again
                (``abort_and_retry``), or are left to the engine (``keep``).
            timeout_s: Seconds for reaching the pause; then DeadlineExceeded, and calls go on.
            ttl_s: Seconds after which the pause ends by itself; those for reaching it count.
        """
        request = pause_request(mode, timeout_s, ttl_s)
        pause: Pause | None = None
        try:
            pause = self._pause(request, timeout_s)
            yield pause
            behind = self.resume(request.pause_id, **pause.version)
        except BaseException as error:
            if pause is not None:
                self.resume(request.pause_id)
            elif not isinstance(error, PolarError):
                # Raised by a signal's handler, say: the mesh has not refused the pause, and nobody else would end it.
                with suppress(PolarError):
                    self.resume(request.pause_id)
            raise
        pause.check_end(behind)

    def _pause(self, request: pb.PauseRequest, timeout_s: float) -> Pause:
        policy = self._call(self._policy.Pause, request, timeout_s + self._timeout_s).policy
        return Pause(policy, request.ttl.ToTimedelta().total_seconds())

    def close(self) -> None:
        """End the connection."""
        self._closed.set()
        self._channel.close()

    def __enter__(self) -> PolicyClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: Callable[..., T], request: object, timeout_s: float | None = None) -> T:
        if self._closed.is_set():
            raise Cancelled("the client is closed", code="CANCELLED")
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        return call(lambda left_s: method(request, timeout=left_s), limit_s, self._closed)
