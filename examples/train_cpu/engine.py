"""A small inference engine that speaks as SGLang does: ids and logprobs with each reply, weights that are reloaded.

    python engine.py FOLDER [--port 8100] [--seed 0]

POST /v1/chat/completions       messages, or input_ids in their place; max_tokens, temperature; whole replies only
POST /tokenize                  messages, or prompt: the ids
POST /update_weights_from_disk  model_path, weight_version: other weights of the same model, from the next reply on
GET  /health, /v1/models

Requests that wait are sampled together, and no reply is by two versions of the weights. Needs torch and transformers.
"""

from __future__ import annotations

import argparse
import json
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from sampler import Reply, Request, Sampler

BATCH_MAX = 64
TOKENS_MAX = 64
CALL = re.compile(r'<tool_call>\{"name": "(\w+)", "arguments": (\{.*\})\}</tool_call>')

Body = dict[str, Any]


class Refused(Exception):
    """The request's fault: 400 with this message."""


class Failed(Exception):
    """The engine's fault: 500 with what caused it."""


@dataclass
class Waiting:
    """A request until it has its reply."""

    request: Request
    done: threading.Event = field(default_factory=threading.Event)
    reply: Reply = field(default_factory=Reply)
    weight_version: str = ""
    failure: Exception | None = None


class Engine:
    """Batches the requests of many threads. ``sampler`` is only touched under ``lock``."""

    def __init__(self, folder: Path) -> None:
        self.sampler = Sampler(folder)
        self.lock = threading.Lock()
        self.waiting: queue.Queue[Waiting] = queue.Queue()
        threading.Thread(target=self._serve, daemon=True).start()

    def chat(self, body: Body) -> Body:
        if body.get("stream"):
            raise Refused("this engine does not stream: set inference.stream to made")
        asked = Waiting(self._request(body))
        self.waiting.put(asked)
        asked.done.wait()
        if asked.failure is not None:
            raise Failed("the reply was not sampled") from asked.failure
        return self._reply(body, asked)

    def _request(self, body: Body) -> Request:
        shape = self.sampler.model.config
        prompt = body.get("input_ids") or self.render(body)
        room = shape.max_position_embeddings - len(prompt)
        if room < 1:
            raise Refused(f"The input ({len(prompt)} tokens) is longer than the model's context length.")
        if not prompt or not all(0 <= one < shape.vocab_size for one in prompt):
            raise Refused(f"input_ids: ids from 0 to {shape.vocab_size - 1}, at least one")
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or TOKENS_MAX
        temperature = body.get("temperature")
        heat = 1.0 if temperature is None else float(temperature)
        if limit < 1 or not heat >= 0:
            raise Refused("max_tokens is at least 1 and temperature at least 0")
        return Request(prompt, min(int(limit), room), heat)

    def render(self, body: Body) -> list[int]:
        tokenizer = self.sampler.tokenizer
        if "messages" not in body:
            return tokenizer.encode(body.get("prompt", ""), add_special_tokens=False)
        return tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, return_dict=False)

    def tokenize(self, body: Body) -> Body:
        ids = self.render(body)
        return {
            "tokens": ids,
            "count": len(ids),
            "max_model_len": self.sampler.model.config.max_position_embeddings,
        }

    def update(self, body: Body) -> Body:
        with self.lock:
            self.sampler.load(body["model_path"], str(body["weight_version"]))
        return {"success": True, "message": "Succeeded to update model weights."}

    def models(self) -> Body:
        return {"object": "list", "data": [{"id": "small", "object": "model", "owned_by": "train_cpu"}]}

    def _serve(self) -> None:
        while True:
            batch = [self.waiting.get()]
            while len(batch) < BATCH_MAX and not self.waiting.empty():
                batch.append(self.waiting.get())
            try:
                self._sample(batch)
            except Exception as error:  # Each call is told; the next ones are served.
                for one in batch:
                    one.failure = error
            for one in batch:
                one.done.set()

    def _sample(self, batch: list[Waiting]) -> None:
        with self.lock:
            replies = self.sampler.sample([one.request for one in batch])
            for one, reply in zip(batch, replies):
                one.reply, one.weight_version = reply, self.sampler.weight_version

    def _reply(self, body: Body, asked: Waiting) -> Body:
        reply, version = asked.reply, asked.weight_version
        texts = [self.sampler.tokenizer.decode([token]) for token in reply.ids]
        count = {"prompt_tokens": len(asked.request.prompt), "completion_tokens": len(reply.ids)}
        message = self._message(reply)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": {
                "content": [
                    {"token": text, "logprob": logprob, "top_logprobs": []}
                    for text, logprob in zip(texts, reply.logprobs)
                ]
            },
            "finish_reason": "tool_calls" if message["tool_calls"] else reply.finish_reason,
            "prompt_token_ids": asked.request.prompt,
            "response_token_ids": reply.ids,
        }
        return {
            "id": uuid.uuid4().hex,
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model", ""),
            "choices": [choice],
            "usage": {**count, "total_tokens": sum(count.values())},
            "metadata": {"weight_version": version},
        }

    def _message(self, reply: Reply) -> Body:
        """The text, or the call that it is, with its arguments as they were sampled."""
        text = self.sampler.tokenizer.decode(reply.ids, skip_special_tokens=True)
        found = CALL.fullmatch(text) if reply.finish_reason == "stop" else None
        if found is None:
            return {"role": "assistant", "content": text, "tool_calls": None}
        function = {"name": found[1], "arguments": found[2]}
        call = {"id": f"call_{uuid.uuid4().hex[:24]}", "index": 0, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    engine: Engine

    def do_GET(self) -> None:
        self._answer({"/health": dict, "/v1/models": self.engine.models}.get(self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        routes: dict[str, Callable[[Body], Body]] = {
            "/v1/chat/completions": self.engine.chat,
            "/tokenize": self.engine.tokenize,
            "/update_weights_from_disk": self.engine.update,
        }
        route = routes.get(self.path)
        self._answer(route and (lambda: route(json.loads(body))))

    def _answer(self, make: Callable[[], Body] | None) -> None:
        status, body = 200, {}
        try:
            if make is None:
                status, body = 404, {"message": f"there is no {self.path}"}
            else:
                body = make()
        except (Refused, ValueError, TypeError, AttributeError, LookupError, OSError, TemplateError) as error:
            status, body = 400, {"object": "error", "message": str(error), "code": 400}
        except Failed as error:
            status, body = 500, {"object": "error", "message": f"{error}: {error.__cause__}", "code": 500}
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # With more, the machine's cores wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    Handler.engine = Engine(options.folder)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
