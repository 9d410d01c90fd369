"""A call that blocks, for asyncio: a thread of its own reads it, a message whenever one is asked for."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import grpc.aio

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


class Call(Protocol[M_co]):
    """Messages one after another, until another thread ends it."""

    def __iter__(self) -> Iterator[M_co]: ...

    def cancel(self) -> None: ...

    @property
    def heard(self) -> float: ...


class InThread(Generic[M]):
    """As a call of grpc.aio: ``read``, ``cancel``. To be made in a coroutine, as it belongs to the running loop."""

    def __init__(self, call: Call[M]) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        #: None: there will be no more.
        self._asked: queue.SimpleQueue[asyncio.Future[M] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="polar-reader", daemon=True).start()

    @property
    def heard(self) -> float:
        """When something came last, as ``time.monotonic`` has it."""
        return self._call.heard

    def read(self) -> asyncio.Future[M]:
        """The next message, or ``grpc.aio.EOF`` behind the last; raises what the call raises."""
        coming: asyncio.Future[M] = self._loop.create_future()
        self._asked.put(coming)
        return coming

    def cancel(self) -> None:
        """End the call; the thread ends with it."""
        self._asked.put(None)
        self._call.cancel()

    def _run(self) -> None:
        messages = iter(self._call)
        while (coming := self._asked.get()) is not None:
            try:
                self._tell(coming, coming.set_result, next(messages, grpc.aio.EOF))
            except Exception as error:
                self._tell(coming, coming.set_exception, error)

    def _tell(self, coming: asyncio.Future[M], how: Callable[[Any], None], what: Any) -> None:
        def tell() -> None:
            if not coming.done():
                how(what)

        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            pass  # The loop is closed, and nobody waits.
