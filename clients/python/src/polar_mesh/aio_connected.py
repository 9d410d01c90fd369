"""What the clients for asyncio have in common."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import grpc

from .aio_stream import check_loop, pause
from .errors import Cancelled, PolarError
from .retry import Tries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

R = TypeVar("R")


class Connected:
    """What all clients have: a time for calls, retries, an end."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._channels: list[grpc.aio.Channel] = []

    async def aclose(self) -> None:
        """End all connections; calls in flight raise Cancelled."""
        self._closed.set()
        for channel in self._channels:
            await channel.close()

    async def __aenter__(self: R) -> R:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _call(
        self,
        method: Callable[..., Awaitable[R]],
        request: object,
        timeout_s: float | None,
        gone: R | None = None,
    ) -> R:
        tries = Tries(self._timeout_s if timeout_s is None else timeout_s)
        while True:
            self._check_open()
            try:
                return await method(request, timeout=tries.left_s)
            except (grpc.RpcError, PolarError) as raised:
                error = tries.failed(raised)
                if gone is not None and tries.is_gone(error):
                    return gone
            except asyncio.CancelledError:
                # Closing the channel cancels its calls, and not the task that awaits them.
                self._check_open()
                raise
            if await pause(self._closed, tries.backoff.delay(error)):
                raise error

    def _check_open(self) -> None:
        check_loop(self._loop)
        if self._closed.is_set():
            raise Cancelled("the client is closed", code="CANCELLED")
