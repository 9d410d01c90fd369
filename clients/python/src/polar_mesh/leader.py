"""Calls to the scheduler that leads, one of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from .gen.polar.scheduler.v1.scheduler_service_pb2_grpc import RolloutServiceStub


class Leader:
    """The RPCs of ``RolloutService`` at the address that answered last.

    One that follows refuses calls with ``NOT_LEADER``, one that is gone is not reached; both are ``UNAVAILABLE``, and
    the next try goes to the next address.
    """

    def __init__(self, channels: Sequence[grpc.Channel | grpc.aio.Channel]) -> None:
        self._stubs = [RolloutServiceStub(channel) for channel in channels]
        self._at = 0

    def turn(self) -> None:
        """The present address is of no use."""
        self._at = (self._at + 1) % len(self._stubs)

    @property
    def stub(self) -> RolloutServiceStub:
        """The present address."""
        return self._stubs[self._at]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def invoke(request: object, timeout: float | None = None) -> Any:
            try:
                return getattr(self.stub, name)(request, timeout=timeout)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    self.turn()
                raise

        return invoke


class AioLeader(Leader):
    """The same for asyncio."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def invoke(request: object, timeout: float | None = None) -> Any:
            try:
                return await getattr(self.stub, name)(request, timeout=timeout)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    self.turn()
                raise

        return invoke
