"""What came of runs: rows of a step each, kept as JSON lines in docs/learning.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "learning.jsonl"
#: Steps whose mean counts, as one step's is noise; so many at the start are played by the base model.
WINDOW = 3

#: step, seconds since the start, reward (mean of the step's sessions), sessions, and what else a trainer tells.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    steps: int
    sessions: int
    minutes: float
    #: Mean reward of the first WINDOW steps.
    start: float
    #: Of the last ones.
    end: float
    #: Of all.
    mean: float
    #: Seconds until that of WINDOW steps was twice the start; None: never.
    twice_after: float | None
    #: How far the line through the steps' rewards goes from the first step to the last, and two standard errors of that.
    change: float
    change_error: float

    @property
    def flat(self) -> bool:
        """The change is none but for noise, and the noise is so small that a rise to twice as much would have shown."""
        return abs(self.change) < self.change_error and self.change + self.change_error < self.mean


def read() -> dict[str, list[Row]]:
    """The rows of each run, by its name."""
    runs: dict[str, list[Row]] = {}
    for line in FILE.read_text().splitlines() if FILE.exists() else []:
        row = json.loads(line)
        runs.setdefault(row.pop("run"), []).append(row)
    return runs


def write(runs: Mapping[str, Iterable[Row]]) -> None:
    lines = [json.dumps({"run": name, **row}) for name in sorted(runs, key=str.lower) for row in runs[name]]
    FILE.write_text("".join(f"{line}\n" for line in lines))


def summary(rows: Sequence[Row]) -> Summary:
    """Of at least WINDOW rows."""
    rewards = [row["reward"] for row in rows]
    seen = [fmean(rewards[at : at + WINDOW]) for at in range(len(rewards) - WINDOW + 1)]
    twice = next(
        (row["seconds"] for row, reward in zip(rows[WINDOW - 1 :], seen) if reward >= 2 * seen[0]), None
    )
    change, error = trend(rewards)
    return Summary(
        steps=len(rows),
        sessions=sum(row["sessions"] for row in rows),
        minutes=rows[-1]["seconds"] / 60,
        start=seen[0],
        end=seen[-1],
        mean=fmean(rewards),
        twice_after=twice,
        change=change,
        change_error=2 * error,
    )


def trend(rewards: Sequence[float]) -> tuple[float, float]:
    """How far the line of least squares through the rewards goes from the first to the last, and its standard error."""
    count = len(rewards)
    middle, mean = (count - 1) / 2, fmean(rewards)
    spread = sum((at - middle) ** 2 for at in range(count))
    slope = sum((at - middle) * reward for at, reward in enumerate(rewards)) / spread
    rests = [reward - mean - slope * (at - middle) for at, reward in enumerate(rewards)]
    error = sqrt(sum(rest**2 for rest in rests) / (count - 2) / spread) if count > 2 else inf
    return slope * (count - 1), error * (count - 1)
