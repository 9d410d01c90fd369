"""The usual proxy in Python: parse, forward with httpx, answer. Run by uvicorn; ENGINE_URL says where to."""

import copy
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

ENGINE_URL = os.environ["ENGINE_URL"]
LIMITS = httpx.Limits(max_connections=2048, max_keepalive_connections=2048)


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with httpx.AsyncClient(base_url=ENGINE_URL, timeout=900, limits=LIMITS) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health():
    return {}


@app.post("/v1/chat/completions")
async def chat(request: Request):
    body = copy.deepcopy(await request.json())
    client = request.app.state.client
    if not body.get("stream"):
        reply = await client.post("/v1/chat/completions", json=body)
        return JSONResponse(reply.json(), status_code=reply.status_code)
    sent = client.build_request("POST", "/v1/chat/completions", json=body)
    reply = await client.send(sent, stream=True)
    return StreamingResponse(
        reply.aiter_raw(), status_code=reply.status_code, media_type="text/event-stream"
    )
