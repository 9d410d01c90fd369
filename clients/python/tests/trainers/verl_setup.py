"""verl's own agent loop workers on a CPU: its configuration, and rollout servers in whose place a small model samples."""

from __future__ import annotations

import json
import pathlib
import random
import sys

import ray
import torch
import verl.trainer.config
from omegaconf import OmegaConf
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput
from verl.workers.rollout.router import GlobalRequestLoadBalancer

EXAMPLE = pathlib.Path(__file__).parents[4] / "examples" / "train_cpu"
sys.path.insert(0, str(EXAMPLE))

import doors  # noqa: E402, F401
import tasks  # noqa: E402
from sampler import Request, Sampler  # noqa: E402

STEP = 7
#: A house whose sessions have no reward.
UNGRADED = -1


def config(model, loops, *, prompt_length=256, response_length=768):
    """The trainer's whole configuration, as verl's own file has it, with ``polar`` as the agent loop."""
    folder = pathlib.Path(verl.trainer.config.__file__).parent
    made = OmegaConf.load(folder / "_generated_ppo_trainer.yaml")
    made.actor_rollout_ref.model.path = str(model)
    made.data.max_prompt_length, made.data.max_response_length = prompt_length, response_length
    rollout = made.actor_rollout_ref.rollout
    rollout.name = "vllm"
    rollout.agent.default_agent_loop = "polar"
    rollout.agent.agent_loop_config_path = str(loops)
    return made


def loops(folder, **settings):
    """The file that names the agent loop."""
    file = folder / "loops.yaml"
    one = {"name": "polar", "_target_": "polar_mesh.bridges.verl.PolarAgentLoop", "task": "verl_setup:task_of_row"}
    file.write_text(json.dumps([{**one, **settings}]))
    return file


def task_of_row(row):
    """A house of examples/train_cpu, drawn by the row's seed."""
    house = int(row["extra_info"]["house"])
    made = tasks.task("unused", 1, random.Random(house))
    del made["task_id"], made["num_samples"], made["sampling"]
    if house == UNGRADED:
        del made["evaluator"]
    return made


@ray.remote
class SmallServer:
    """In the place of one of verl's rollout servers: the example's base model samples."""

    def __init__(self, model):
        self.sampler = Sampler(model)
        self.asked = []
        #: So many requests are given up on first, as an update of weights does.
        self.broken_off = 1

    async def generate(self, *, request_id, prompt_ids, sampling_params, image_data=None, video_data=None):
        if self.broken_off > 0:
            self.broken_off -= 1
            return TokenOutput(token_ids=[], log_probs=[], stop_reason="aborted")
        self.asked.append((list(prompt_ids), dict(sampling_params)))
        (reply,) = self.sampler.sample(
            [Request(prompt_ids, sampling_params["max_tokens"], sampling_params["temperature"])]
        )
        return TokenOutput(
            token_ids=reply.ids,
            log_probs=reply.logprobs,
            stop_reason="completed",
            extra_fields={"global_steps": STEP},
        )

    def told(self):
        """What it was asked: prompts and sampling parameters."""
        return self.asked


def servers(config, model, count=2):
    """verl's client of rollout servers, its load balancer and so many servers, and the servers themselves."""
    actors = [SmallServer.remote(model) for _ in range(count)]
    balancer = ray.remote(GlobalRequestLoadBalancer).remote({f"server-{at}": one for at, one in enumerate(actors)})
    return LLMServerClient(config, balancer), actors


def rescored(model, ids):
    """Logprobs of all ids but the first, of one sequence alone."""
    with torch.no_grad():
        logprobs = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
    return logprobs.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
