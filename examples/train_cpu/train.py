"""The training loop: groups from the stream, a step of GRPO, weights back to the engine, and then the acknowledgement.

It is asynchronous with a bound: AHEAD groups are always on their way, so that sessions run while a step is taken,
and the tokens of a group come from the newest weights, or from those of one or two steps before.
"""

from __future__ import annotations

import itertools
import json
import random
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import curves
import grpo
import numpy as np
import torch
from mesh import Site
from polar_mesh import Batch, Client, PolicyClient, Trajectory, rewards
from tasks import task
from transformers import AutoModelForCausalLM

GROUP_SIZE = 16
GROUPS_A_STEP = 4
#: Groups on their way.
AHEAD = GROUPS_A_STEP + 2
#: So small that steps on noise lead nowhere: with 1e-3 the control forgets the game.
LEARNING_RATE = 2e-4
#: Without a group for so long, something is broken.
GROUP_SECONDS_MAX = 300


@dataclass(frozen=True)
class Options:
    seed: int
    minutes: float
    #: The control: each group's rewards are dealt out anew among its sessions before the step.
    shuffle_rewards: bool = False


def train(site: Site, base: Path, options: Options, tell: Callable[[dict[str, Any]], None]) -> None:
    """Train for so many minutes, at least to the first step that may train; ``tell`` gets a row of the curve after each."""
    rng = random.Random(options.seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    started = time.monotonic()
    with Client(site.rollout_url, site.trajectory_url) as client, PolicyClient(site.proxy_url) as policy:
        new_tasks = (task(f"doors-{number}", GROUP_SIZE, rng) for number in itertools.count())
        for _ in range(AHEAD):
            client.submit(next(new_tasks))
        with client.stream("trainer", max_unacked=AHEAD) as stream:
            published = 0
            for step in itertools.count(1):
                batches = []
                while len(batches) < GROUPS_A_STEP:
                    batches.append(stream.next(timeout_s=GROUP_SECONDS_MAX))
                    client.submit(next(new_tasks))
                row = {"step": step, **about(batches, published)}
                told = None
                # Those before are played by the base model, as the step's own are: where the curve starts.
                if step >= curves.WINDOW:
                    told = grpo.step(
                        model, optimizer, groups_of(batches, rng if options.shuffle_rewards else None)
                    )
                if told is not None:
                    published += 1
                    publish(model, published, site, policy)
                stream.ack(batches)
                seconds = time.monotonic() - started
                tell({**row, "seconds": round(seconds, 2), **(told or {})})
                # Also where it has nothing more to learn: no group of one who always wins tells anything.
                if step >= curves.WINDOW and seconds > options.minutes * 60:
                    return


def publish(model: torch.nn.Module, version: int, site: Site, policy: PolicyClient) -> None:
    """Give the engine the weights, and tell the mesh their number. The engine changes them between two replies."""
    folder = site.folder / "weights"
    model.save_pretrained(folder)
    body = json.dumps({"model_path": str(folder), "weight_version": str(version)}).encode()
    with urllib.request.urlopen(f"{site.engine_url}/update_weights_from_disk", body) as answer:
        answer.read()
    policy.publish_version(version, str(version))


def groups_of(batches: Sequence[Batch], shuffle: random.Random | None) -> Sequence[rewards.Group]:
    return batches if shuffle is None else [_shuffled(batch.trajectories, shuffle) for batch in batches]


def _shuffled(group: Sequence[Trajectory], rng: random.Random) -> list[Trajectory]:
    dealt = [one.reward for one in group]
    rng.shuffle(dealt)
    return [replace(one, reward=reward) for one, reward in zip(group, dealt)]


def about(batches: Sequence[Batch], newest: int) -> dict[str, Any]:
    """A step's sessions: mean reward, and how many versions the oldest of their tokens are behind."""
    trajectories = [one for batch in batches for one in batch.trajectories]
    graded = rewards.outcome_rewards(trajectories)
    if np.isnan(graded).all():
        raise SystemExit(f"no session of a step has a reward; the first one's failure: {trajectories[0].failure}")
    return {
        "reward": round(float(np.nanmean(graded)), 4),
        "sessions": len(trajectories),
        "calls": sum(one.stats.calls for one in trajectories),
        "lag": newest - min(one.policy_version_min for one in trajectories if one.traces),
    }
