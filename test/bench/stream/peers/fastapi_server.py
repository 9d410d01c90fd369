"""Groups as JSON over HTTP in the usual way: FastAPI with Pydantic models on uvicorn.

usage: fastapi_server.py FILE   (groups as JSON); prints its port.
"""

import json
import socket
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Trace(BaseModel):
    prompt_ids: list[int]
    response_ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]


class Trajectory(BaseModel):
    session_id: str
    reward: float | None
    traces: list[Trace]


class Group(BaseModel):
    trajectories: list[Trajectory]


with open(sys.argv[1], encoding="utf-8") as file:
    groups = [Group.model_validate(one) for one in json.load(file)]
app = FastAPI()
asked = 0


@app.get("/next")
async def next_group() -> Group:
    global asked
    asked += 1
    return groups[(asked - 1) % len(groups)]


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])
