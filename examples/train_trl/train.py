"""Trains the small model of examples/train_cpu with TRL's GRPOTrainer, its rollouts played through the mesh.

    npm run train:trl                               three minutes
    npm run train:trl -- --minutes 5 --record       the run of docs/learning.md, whose figures and picture it renews

The mesh, the engine and the game are those of examples/train_cpu; what is TRL's is here: a prompt names a house, a session
plays it. Ends with 1 where the reward did not come to twice its start.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "examples/train_cpu")]
# All is on this machine: no hub is asked, nothing is reported to one.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TRL_EXPERIMENTAL_SILENCE="1")

import curves  # noqa: E402
import report  # noqa: E402
import torch  # noqa: E402
from base import base_model  # noqa: E402
from curves import Row  # noqa: E402
from datasets import Dataset  # noqa: E402
from mesh import Site, site  # noqa: E402
from tasks import task  # noqa: E402
from transformers import AutoModelForCausalLM, PrinterCallback, TrainerCallback  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

from polar_mesh import Client, PolicyClient  # noqa: E402
from polar_mesh.bridges.trl import WeightTransfer, polar_reward, rollout_func  # noqa: E402

#: Of the run in docs/learning.jsonl.
NAME = "TRL"
MINUTES = 3.0
GROUP_SIZE = 16
GROUPS_A_STEP = 4
STEPS_MAX = 10_000
LEARNING_RATE = 1e-3


class Curve(TrainerCallback):
    """A row after each step; ends the training when its time is over."""

    def __init__(self, minutes: float) -> None:
        self.rows: list[Row] = []
        self._minutes = minutes

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.monotonic()

    def on_log(self, _args: Any, state: Any, control: Any, logs: dict[str, float], **_: Any) -> None:
        seconds = round(time.monotonic() - self._began, 2)
        if "reward" in logs:
            sessions = GROUP_SIZE * GROUPS_A_STEP
            row = {"step": state.global_step, "seconds": seconds, "reward": logs["reward"], "sessions": sessions}
            self.rows.append(row)
            print(json.dumps(row), flush=True)
        # Of fewer steps nothing can be told.
        control.should_training_stop = seconds > 60 * self._minutes and len(self.rows) >= curves.WINDOW


def loader(where: Site, base: Path) -> Callable[[Iterator[tuple[str, torch.Tensor]], int], str]:
    """Brings parameters into the engine by way of a folder that it reads."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)

    def load(parameters: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        model.load_state_dict(dict(parameters), strict=False)
        model.save_pretrained(where.folder / "weights")
        body = {"model_path": str(where.folder / "weights"), "weight_version": str(version)}
        url = f"{where.engine_url}/update_weights_from_disk"
        with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
            answer.read()
        return str(version)

    return load


def house(prompt: str) -> dict[str, Any]:
    """The task that a prompt names; its id and the number of its samples are the bridge's."""
    return task("", GROUP_SIZE, random.Random(prompt))


def settings(seed: int, folder: Path) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(folder),
        seed=seed,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        max_steps=STEPS_MAX,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=GROUPS_A_STEP * GROUP_SIZE,
        num_generations=GROUP_SIZE,
        beta=0.0,
    )


def train(where: Site, base: Path, seed: int, minutes: float) -> list[Row]:
    houses = Dataset.from_list([{"prompt": f"house {seed}.{number}"} for number in range(STEPS_MAX)])
    curve = Curve(minutes)
    with Client(where.rollout_url, where.trajectory_url) as client, PolicyClient(where.proxy_url) as policy:
        # No call is in flight while this trainer changes its weights: there is nothing to wait for.
        weights = WeightTransfer(policy, loader(where, base), mode="keep")
        rollouts = rollout_func(client, house, weights=weights)
        trainer = GRPOTrainer(
            model=str(base),
            reward_funcs=polar_reward,
            args=settings(seed, where.folder / "trl"),
            train_dataset=houses,
            rollout_func=rollouts,
            callbacks=[curve],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        rollouts.acknowledge()
        rollouts.close()
    print(json.dumps(rollouts.counts), flush=True)
    return curve.rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of houses, sampling and training (default: 1)")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of the training (default: {MINUTES:g})")
    parser.add_argument("--record", action="store_true", help="renew the figures and the picture of docs/learning.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    # Ends the mesh and the engine, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    base = base_model()
    with site(base, seed=options.seed) as where:
        rows = train(where, base, options.seed, options.minutes)
    if options.record:
        report.record({NAME: rows})
    print(report.table({NAME: rows}))
    return 0 if curves.summary(rows).twice_after is not None else 1


if __name__ == "__main__":
    sys.exit(main())
