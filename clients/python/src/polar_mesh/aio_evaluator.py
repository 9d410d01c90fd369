"""Grading again, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc

from . import limits
from .aio_connected import Connected
from .arguments import seconds
from .certificates import File, Security, security
from .channel import open_aio_channel
from .errors import from_rpc_error
from .evaluator import evaluate_request
from .gen.polar.common.v1.task_pb2 import EvaluatorSpec
from .gen.polar.evaluator.v1 import evaluator_service_pb2 as pb
from .gen.polar.evaluator.v1.evaluator_service_pb2_grpc import EvaluatorServiceStub


class EvaluatorClient(Connected):
    """``polar_mesh.EvaluatorClient`` for asyncio, with the same arguments; made and used in one event loop."""

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
        super().__init__(limits.EVALUATE_S)
        secure = security([proxy_url], Security(credentials, None), ca, cert, key)
        self._channels = [open_aio_channel(proxy_url, secure, token)]
        self._evaluator = EvaluatorServiceStub(self._channels[0])

    async def evaluate_session(
        self,
        session_id: str,
        evaluator: Mapping[str, Any] | EvaluatorSpec | None = None,
        *,
        timeout_s: float = limits.EVALUATE_S,
    ) -> pb.EvaluateSessionResponse:
        """As ``polar_mesh.EvaluatorClient.evaluate_session``."""
        self._check_open()
        request = evaluate_request(session_id, evaluator)
        try:
            return await self._evaluator.EvaluateSession(request, timeout=seconds("timeout_s", timeout_s))
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.CancelledError:
            # Closing the channel cancels its calls, and not the task that awaits them.
            self._check_open()
            raise
