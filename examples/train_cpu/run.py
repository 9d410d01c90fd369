"""Trains the small model to play the game through the mesh, once for each seed; each run has a mesh of its own.

    npm run train:cpu                               one run of five minutes
    npm run train:cpu -- --seeds 1,2,3 --control    those of docs/learning.md, whose figures and picture it renews

Ends with 1 where a run's reward did not come to twice its start, or where the control's did not stay flat.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python/src"))
# Of this process and the engine: nothing is looked for elsewhere.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")

import curves
import report
import torch
from base import base_model
from curves import Row
from mesh import site
from train import Options, train

MINUTES = 5.0


def run(name: str, base: Path, options: Options) -> list[Row]:
    """The curve, which is also printed as it grows."""
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        more = ", ".join(
            f"{key} {value:.3g}" for key, value in row.items() if key not in ("step", "seconds", "reward")
        )
        bar = "#" * round(40 * row["reward"])
        print(
            f"{name}  {row['seconds']:5.0f} s  step {row['step']:3}  reward {row['reward']:.2f} {bar:40}  {more}",
            flush=True,
        )

    with site(base, seed=options.seed) as where:
        train(where, base, options, tell)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", default="1", help="of tasks, sampling and training, by commas (default: 1)"
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of each run (default: {MINUTES:g})")
    parser.add_argument(
        "--shuffle-rewards", action="store_true", help="one run, of the first seed, that must not learn"
    )
    parser.add_argument(
        "--control", action="store_true", help="that run, too; docs/learning.md becomes what these tell"
    )
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    wanted = (
        {} if options.shuffle_rewards else {f"seed {seed}": Options(seed, options.minutes) for seed in seeds}
    )
    if options.control or options.shuffle_rewards:
        wanted[report.SHUFFLED] = Options(seeds[0], options.minutes, shuffle_rewards=True)
    torch.set_num_threads(1)
    # Ends the mesh and the engine, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    base = base_model()
    runs: dict[str, list[Row]] = {}
    for name, one in wanted.items():
        runs[name] = run(name, base, one)
        if options.control:
            report.record({name: runs[name]})
    print(report.table(runs))
    return 0 if all(as_it_should(one, runs[name]) for name, one in wanted.items()) else 1


def as_it_should(options: Options, rows: list[Row]) -> bool:
    of = curves.summary(rows)
    return of.flat if options.shuffle_rewards else of.twice_after is not None


if __name__ == "__main__":
    sys.exit(main())
