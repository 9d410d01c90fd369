"""verl's rollout servers as an engine of the mesh, in SGLang's dialect, behind ThunderAgent's names of programs.

POST /v1/chat/completions  messages, or input_ids in their place; whole replies only
POST /tokenize             messages, or prompt: the ids
POST /programs/release     a session has ended
GET  /health, /v1/models
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from .chat import Chat, Refused, Unanswered

#: A conversation of a million ids, as text.
BODY_BYTES_MAX = 64 << 20


class EngineDoor:
    """Answers as one engine; which server samples is verl's to choose, by the session that a call belongs to."""

    def __init__(self, server_manager: Any, chat: Chat) -> None:
        self._servers = server_manager
        self._chat = chat
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def open(self, host: str, port: int) -> bool:
        """False where another process of this machine listens there."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post("/v1/chat/completions", self._told(self._complete))
        app.router.add_post("/tokenize", self._told(self._tokenize))
        app.router.add_post("/programs/release", self._told(_release))
        app.router.add_get("/health", _healthy)
        app.router.add_get("/v1/models", _models)
        # A harness that leaves ends its call.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            await self.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        self.port = self._runner.addresses[0][1]
        return True

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        # The template is Python of some milliseconds.
        prompt_ids = await asyncio.to_thread(self._chat.prompt, body)
        params = self._chat.sampling(body, prompt_ids)
        # Calls of a session find their cache where the last one was sampled.
        session = str(body.get("program_id") or "none")
        # Servers take out of it what they have read.
        output = await self._servers.generate(
            request_id=session, prompt_ids=prompt_ids, sampling_params=dict(params)
        )
        return await self._chat.reply(body, prompt_ids, params["max_tokens"], output)

    async def _tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = await asyncio.to_thread(self._chat.prompt, body)
        return {"tokens": ids, "count": len(ids), "max_model_len": self._chat.ids_max}

    def _told(
        self, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                return web.json_response(await answer(await request.json()))
            except (Refused, ValueError, TypeError, AttributeError, LookupError) as error:
                return _error(400, str(error))
            except Unanswered as error:
                return _error(503, str(error))
            except Exception as error:
                return _error(500, f"{type(error).__name__}: {error}")

        return handle


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"object": "error", "message": message, "code": status}, status=status)


async def _release(_: dict[str, Any]) -> dict[str, Any]:
    return {}


async def _healthy(_: web.Request) -> web.Response:
    return web.json_response({})


async def _models(_: web.Request) -> web.Response:
    model = {"id": "policy", "object": "model", "owned_by": "verl"}
    return web.json_response({"object": "list", "data": [model]})
