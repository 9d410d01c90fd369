"""The leases of sessions that are open here: renewed for as long as this process is there, and until they are closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from .errors import Cancelled, FailedPrecondition, NotFound, PolarError

#: Renewals within one lease: single ones may fail.
IN_A_LEASE = 3
#: The session is not open any more, or the client is closed: closing it will tell.
OVER = (Cancelled, FailedPrecondition, NotFound)


@contextmanager
def renewed(renew: Callable[[float], object], lease_s: float | None) -> Iterator[None]:
    """Calls ``renew`` with its time limit in a thread of its own, which the process does not wait for."""
    if lease_s is None:
        yield
        return
    over = threading.Event()
    every_s = lease_s / IN_A_LEASE

    def run() -> None:
        while not over.wait(every_s):
            try:
                renew(every_s)
            except OVER:
                return
            except PolarError:
                continue

    threading.Thread(target=run, name="polar-lease", daemon=True).start()
    try:
        yield
    finally:
        over.set()


@asynccontextmanager
async def aio_renewed(renew: Callable[[float], Awaitable[object]], lease_s: float | None) -> AsyncIterator[None]:
    """The same by a task of the loop."""
    if lease_s is None:
        yield
        return
    every_s = lease_s / IN_A_LEASE

    async def run() -> None:
        while True:
            await asyncio.sleep(every_s)
            try:
                await renew(every_s)
            except OVER:
                return
            except PolarError:
                continue

    task = asyncio.create_task(run(), name="polar-lease")
    try:
        yield
    finally:
        task.cancel()
