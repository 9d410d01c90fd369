"""``polar-export``: traces, SFT and preference sets to a folder of files."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from ..client import Client
from ..errors import PolarError, Unavailable
from .run import Progress, Result, export
from .rule import OUTCOMES, Rule
from .store import ExportError

_BAR = 24
#: Seconds between two looks of the bar.
_PAUSE_S = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 failed, 2 wrong arguments, 3 the mesh cannot be reached."""
    args = _parser().parse_args(arguments)
    bar = _Bar()
    try:
        rule = Rule(args.reward_min, args.tests_passed, args.no_drift, args.outcome)
        client = Client(args.rollout_url.split(","), args.trajectory_url, timeout_s=args.timeout)
    except ValueError as error:
        print(f"polar-export: {error}", file=sys.stderr)
        return 2
    try:
        with client:
            result = export(
                client,
                args.out,
                what=args.what,
                format=args.format,
                tasks=args.task,
                queue=args.queue,
                consumer=args.consumer,
                rule=rule,
                idle_s=args.idle,
                on_progress=bar.show,
            )
    except (ExportError, PolarError) as error:
        bar.end()
        print(f"polar-export: {error}", file=sys.stderr)
        return 3 if isinstance(error, Unavailable) else 1
    except KeyboardInterrupt:
        bar.end()
        print("polar-export: interrupted; run the same again to go on", file=sys.stderr)
        return 130
    bar.end()
    _tell(args.out, result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polar-export",
        description="Writes what is missing of an export into a folder; run it again to go on, or to add what has ended since.",
    )
    parser.add_argument("out", metavar="FOLDER", help="parts, state and README.md go there")
    parser.add_argument("--what", choices=("traces", "sft", "preference"), default="traces")
    parser.add_argument("--format", choices=("jsonl", "parquet"), default="jsonl")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--task", action="append", default=[], metavar="ID", help="a task; may be given more than once")
    source.add_argument("--queue", metavar="NAME", help="all tasks of a queue")
    source.add_argument("--consumer", metavar="NAME", help="what a consumer of the stream has not acknowledged")
    parser.add_argument("--reward-min", type=float, metavar="X", help="sessions with at least this reward")
    parser.add_argument("--tests-passed", action="store_true", help="sessions whose expected tests passed")
    parser.add_argument("--no-drift", action="store_true", help="sessions in which every call appends")
    parser.add_argument("--outcome", choices=OUTCOMES, help="that ended in this way")
    parser.add_argument("--idle", type=float, default=5.0, metavar="S", help="without a batch for so long, ask if there is more")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="one call with all its retries")
    for name, default in (("rollout", "http://127.0.0.1:8080"), ("trajectory", "http://127.0.0.1:8070")):
        url = os.environ.get(f"POLAR_{name.upper()}_URL") or default
        parser.add_argument(f"--{name}-url", default=url, metavar="URL", help=f"default {url}")
    return parser


def _tell(folder: str, result: Result) -> None:
    print(f"{folder}: {result.rows} rows of {result.groups} groups in {result.parts} parts, {result.rows_added} new")
    for reason, count in result.dropped.items():
        print(f"  left out: {count} {reason}")
    if result.unfinished:
        print(f"  {result.unfinished} groups have not ended: run the same again when they have")
    if result.absent:
        print(f"  {result.absent} groups have ended and are not in the store: retention has taken them, or they come in a moment")


class _Bar:
    """On a terminal, one line that changes; elsewhere nothing."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._last = 0.0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self._shown or (now - self._last < _PAUSE_S and progress.groups != progress.groups_total):
            return
        self._last = now
        total = progress.groups_total
        filled = 0 if not total else _BAR * progress.groups // total
        bar = "" if total is None else f"[{'#' * filled}{'.' * (_BAR - filled)}] "
        count = f"{progress.groups} groups" if total is None else f"{progress.groups}/{total} groups"
        sys.stderr.write(f"\r{bar}{count}, {progress.rows} rows, {progress.parts} parts ")
        sys.stderr.flush()

    def end(self) -> None:
        if self._shown and self._last:
            sys.stderr.write("\n")
