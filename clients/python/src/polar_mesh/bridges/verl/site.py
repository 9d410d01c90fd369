"""What the agent loops of a process share: connections to the mesh, the engine's door, and the acknowledgements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ... import aio
from ...errors import PolarError
from ...filters import Filter
from ..task_ids import new_task_ids
from .chat import Chat
from .engine import EngineDoor
from .rows import Played

#: For a session whose caller has left; what that does not reach ends by its budgets.
CANCEL_S = 5.0
#: Before the stream of acknowledgements is opened again behind an error that it does not get over by itself, and before
#: the engine's port is tried again that another worker of the machine has: until that one ends.
AGAIN_S = 30.0
_MS = 1000

_log = logging.getLogger("polar_mesh")


@dataclass(frozen=True)
class Settings:
    rollout_url: str
    trajectory_url: str
    consumer: str
    engine_host: str
    engine_port: int | None
    secure: tuple[tuple[str, str], ...] = ()


class Site:
    """Made and used in one event loop."""

    def __init__(self, settings: Settings, server_manager: Any, chat: Chat) -> None:
        self._settings = settings
        secure: dict[str, Any] = dict(settings.secure)
        self._client = aio.Client(settings.rollout_url, settings.trajectory_url, **secure)
        self._task_ids = new_task_ids(settings.consumer)
        self._door = EngineDoor(server_manager, chat)
        self._opened: asyncio.Task[None] | None = None
        self._busy: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Once, whoever is first; the others wait for it."""
        if self._opened is None:
            self._opened = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opened)

    async def _open(self) -> None:
        if self._settings.engine_port is not None and not await self._listen(self._settings.engine_port):
            self._busy.append(asyncio.ensure_future(self._inherit(self._settings.engine_port)))
        self._busy.append(asyncio.ensure_future(self._acknowledge()))

    async def _listen(self, port: int) -> bool:
        return await self._door.open(self._settings.engine_host, port)

    async def _inherit(self, port: int) -> None:
        """The door of a worker that has ended."""
        while True:
            await asyncio.sleep(AGAIN_S)
            if await self._listen(port):
                return

    async def close(self) -> None:
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._door.close()
        await self._client.aclose()

    async def play(self, spec: Mapping[str, Any], timeout_s: float) -> Played:
        """One session of the task, when it has ended. It is cancelled where nobody waits for it any more."""
        task_id = next(self._task_ids)
        try:
            await self._client.submit({**spec, "task_id": task_id, "num_samples": 1})
            await self._client.wait(task_id, timeout_s=timeout_s)
        except BaseException:
            # Also where the submit failed, as it may have been taken.
            with suppress(PolarError, asyncio.CancelledError):
                await self._client.cancel(task_id, timeout_s=CANCEL_S)
            raise
        (session,) = await self._client.list_sessions(task_id)
        trajectory = await self._client.get_trajectory(session.session_id)
        times = session.times
        return Played(trajectory, times.run_ms / _MS, times.evaluate_ms / _MS)

    async def _acknowledge(self) -> None:
        """All groups, without their traces, which ``play`` has asked for: what nobody acknowledges stays in the store."""
        nothing = Filter(group_tokens_max=1)
        while True:
            try:
                async with self._client.stream(self._settings.consumer, shared=True, filter=nothing) as stream:
                    async for batch in stream:
                        await stream.ack([batch])
            except PolarError as error:
                _log.warning("groups are not acknowledged for %g s: %s", AGAIN_S, error)
            await asyncio.sleep(AGAIN_S)


_sites: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Settings, Site]] = WeakKeyDictionary()


async def site_of(settings: Settings, server_manager: Any, chat: Chat) -> Site:
    """That of this event loop; it stays until its process ends, or ``close_sites``."""
    sites = _sites.setdefault(asyncio.get_running_loop(), {})
    if settings not in sites:
        sites[settings] = Site(settings, server_manager, chat)
    await sites[settings].open()
    return sites[settings]


async def close_sites() -> None:
    """Those of this event loop."""
    for site in _sites.pop(asyncio.get_running_loop(), {}).values():
        await site.close()
