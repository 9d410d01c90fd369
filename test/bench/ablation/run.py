"""The same stored sessions, built by both builders and trained: what each costs a trainer.

    npm run bench:ablation                      plays the sessions, builds, trains, prints the table; 3 minutes
    npm run bench:ablation -- --folder DIR      keeps the sessions there; the next run takes them from there
    npm run bench:ablation -- --write           the table goes into docs/benchmarks.md

Ends with 1 where the two builders' traces do not train the same.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "examples/train_cpu")]
# All is on this machine: no hub is asked, nothing is reported to one.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")

import torch  # noqa: E402
from base import base_model  # noqa: E402
from measure import is_same, measure  # noqa: E402
from mesh import site  # noqa: E402
from rollouts import GROUP_SIZE, Length, Stored, record  # noqa: E402
from table import put, table  # noqa: E402

DOCUMENT = ROOT / "docs/benchmarks.md"
#: The game of the example, and longer ones of which some sessions are won, too.
LENGTHS = (Length(doors=4, calls=5), Length(doors=6, calls=10), Length(doors=9, calls=20))
GROUPS = 4
SEED = 1


def stored(folder: Path, base: Path, groups: int) -> list[Stored]:
    """The sessions of each length, played where they are not there yet."""
    sets = {length: Stored(folder / length.name) for length in LENGTHS}
    missing = {length: into for length, into in sets.items() if not into.is_there}
    if missing:
        with site(base, seed=SEED) as where:
            for length, into in missing.items():
                sessions = groups * GROUP_SIZE
                print(f"playing {sessions} sessions of at most {length.calls} calls", flush=True)
                record(where, length, groups, into, SEED)
    return list(sets.values())


def machine() -> str:
    cores, version = os.cpu_count(), torch.__version__.split("+")[0]
    return f"{cores} cores, of which torch {version} uses one; {date.today().isoformat()}."


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="of the stored sessions; default: one that is removed")
    parser.add_argument("--groups", type=int, default=GROUPS, help=f"a length (default: {GROUPS})")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    # Ends the mesh and the engine, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    base = base_model()
    with tempfile.TemporaryDirectory(prefix="polar-ablation-") as temporary:
        sets = stored(options.folder or Path(temporary), base, options.groups)
        measured = [measure(one, base) for one in sets]
    text = f"{machine()}\n\n{table(measured)}"
    print(text)
    if options.write:
        DOCUMENT.write_text(put(DOCUMENT.read_text(), text))
    return 0 if all(map(is_same, measured)) else 1


if __name__ == "__main__":
    sys.exit(main())
