"""Stored sessions, built by both builders and trained: what each takes, and whether they train the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import training
from rollouts import Stored
from table import BUILDERS, Figures, Measured
from traces import Groups, Row, expected_ratio, groups_of, size

ROOT = Path(__file__).parents[3]
ROUNDS = 3
#: Rounding of float32, summed up over a session.
LOGPROB_GAP_MAX = 1e-3
GRADIENT_GAP_MAX = 1e-3


def measure(of: Stored, base: Path) -> Measured:
    groups = {name: rebuilt(of, name) for name in BUILDERS}
    gradients = {name: training.gradient(base, groups[name]) for name in BUILDERS}
    # The fastest round of each: what else the machine does can only add to it.
    epochs = [{name: training.epoch(base, groups[name]) for name in BUILDERS} for _ in range(ROUNDS)]
    figures = {
        name: Figures(
            size=size(groups[name]),
            updates=epochs[0][name].updates,
            seconds=min(one[name].seconds for one in epochs),
            cpu_seconds=min(one[name].cpu_seconds for one in epochs),
            logprob_gap=gradients[name].logprob_gap,
        )
        for name in BUILDERS
    }
    first, second = (gradients[name].values for name in BUILDERS)
    return Measured(
        calls=len(_rows(of.calls)),
        figures=figures,
        expected_ratio=expected_ratio(groups["per_request"]),
        gradient_gap=float((first - second).norm() / second.norm()),
    )


def rebuilt(of: Stored, builder: str) -> Groups:
    """What `polar rebuild` makes of the calls."""
    traces = of.folder / f"{builder}.jsonl"
    command = [ROOT / "node_modules/.bin/node", ROOT / "bin/polar.js", "rebuild", "--builder", builder]
    files = ["--calls", of.calls, "--traces", traces]
    subprocess.run([*command, *files, "--json"], check=True, stdout=subprocess.DEVNULL)
    return groups_of(_rows(of.sessions), _rows(traces))


def is_same(one: Measured) -> bool:
    """Whether both train the same ids, by the logprobs on record, to the same gradient."""
    gaps = [figures.logprob_gap for figures in one.figures.values()]
    trained = {figures.size.trained for figures in one.figures.values()}
    return max(gaps) < LOGPROB_GAP_MAX and one.gradient_gap < GRADIENT_GAP_MAX and len(trained) == 1


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]
