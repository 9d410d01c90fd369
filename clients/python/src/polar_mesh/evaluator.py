"""Grading again: new rewards for sessions that have ended, from what is stored of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import grpc

from . import limits
from .arguments import message_of, seconds
from .certificates import File, Security, security
from .channel import open_channel
from .errors import Cancelled, from_rpc_error
from .gen.polar.common.v1.task_pb2 import EvaluatorSpec
from .gen.polar.evaluator.v1 import evaluator_service_pb2 as pb
from .gen.polar.evaluator.v1.evaluator_service_pb2_grpc import EvaluatorServiceStub
from .specs import task_spec


def evaluate_request(
    session_id: str, evaluator: Mapping[str, Any] | EvaluatorSpec | None
) -> pb.EvaluateSessionRequest:
    """What asks for a grading. Raises InvalidArgument for the evaluator, ValueError or TypeError for the id."""
    if evaluator is not None and not isinstance(evaluator, EvaluatorSpec):
        evaluator = task_spec({"evaluator": evaluator}).evaluator
    return message_of(pb.EvaluateSessionRequest, session_id=session_id, evaluator=evaluator)


class EvaluatorClient:
    """Grades sessions again on one node. Thread-safe: several threads grade several sessions at once.

    Every method raises a ``polar_mesh.errors.PolarError``. Nothing is tried again by itself: a grading may take minutes.

    Args:
        proxy_url: ``http://host:port`` of the LLM proxy of the node that is to grade, as that where the session ran.
        ca, cert, key: Files for TLS, as of ``Client``.
        credentials: In their place.
        token: Access token with the scope ``submit``, where the mesh asks for one; default: ``$POLAR_TOKEN``.
    """

    def __init__(
        self,
        proxy_url: str = "http://127.0.0.1:8081",
        *,
        credentials: grpc.ChannelCredentials | None = None,
        ca: File = None,
        cert: File = None,
        key: File = None,
        token: str | None = None,
    ) -> None:
        self._closed = threading.Event()
        secure = security([proxy_url], Security(credentials, None), ca, cert, key)
        self._channel = open_channel(proxy_url, secure, token)
        self._evaluator = EvaluatorServiceStub(self._channel)

    def evaluate_session(
        self,
        session_id: str,
        evaluator: Mapping[str, Any] | EvaluatorSpec | None = None,
        *,
        timeout_s: float = limits.EVALUATE_S,
    ) -> pb.EvaluateSessionResponse:
        """The reward that a session which has ended would have now; the session stays as it is.

        Args:
            evaluator: In place of the task's own: ``strategy``, ``config`` and ``env``, as in a task.
            timeout_s: Seconds, the wait for a place at the node included; then DeadlineExceeded, and the grading ends.

        Raises:
            NotFound: no such session.
            FailedPrecondition: it has not ended, or reason ``NOTHING_TO_GRADE``: what the evaluator needs is not stored.
            InvalidArgument: the evaluator, with its faults as ``fields``.
        """
        if self._closed.is_set():
            raise Cancelled("the client is closed", code="CANCELLED")
        request = evaluate_request(session_id, evaluator)
        try:
            return self._evaluator.EvaluateSession(request, timeout=seconds("timeout_s", timeout_s))
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error

    def close(self) -> None:
        """End the connection; gradings that it waits for end, too."""
        self._closed.set()
        self._channel.close()

    def __enter__(self) -> EvaluatorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
