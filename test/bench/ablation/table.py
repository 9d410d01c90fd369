"""The table of docs/benchmarks.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traces import Size

BUILDERS = ("per_request", "prefix_merging")
PART = re.compile(r"(?<=<!-- begin: ablation -->\n).*(?=<!-- end: ablation -->)", re.DOTALL)


@dataclass(frozen=True)
class Figures:
    """Of one builder's traces."""

    size: Size
    updates: int
    seconds: float
    cpu_seconds: float
    #: Largest difference between a trained id's logprob under the trainer and on record.
    logprob_gap: float


@dataclass(frozen=True)
class Measured:
    """Of one set of stored sessions."""

    calls: int
    #: By builder.
    figures: Mapping[str, Figures]
    #: Of the ids, by the growth of the sessions alone.
    expected_ratio: float
    #: |difference of the two gradients| / |gradient|.
    gradient_gap: float


def table(sets: Sequence[Measured]) -> str:
    costs = [
        "| sessions, calls | builder | sequences | ids trained | ids processed | updates | wall clock, s | CPU, s |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
        *(line for one in sets for line in _costs(one)),
    ]
    same = [
        "| calls a session | ids processed, times | by the sessions' growth | logprobs differ by | gradients by |",
        "|--:|--:|--:|--:|--:|",
        *map(_same, sets),
    ]
    return "\n".join([*costs, "", *same])


def put(document: str, text: str) -> str:
    """The document with the text in the place of its part."""
    return PART.sub(lambda _: f"\n{text}\n\n", document)


def _costs(of: Measured) -> list[str]:
    rows = []
    for name in BUILDERS:
        one = of.figures[name]
        size = one.size
        rows.append(
            f"| {size.sessions}, {of.calls:,} | `{name}` | {size.sequences:,} | {size.trained:,} "
            f"| {size.processed:,} | {one.updates} | {one.seconds:.2f} "
            f"| {one.cpu_seconds:.2f} |"
        )
    first, second = (of.figures[name] for name in BUILDERS)
    times = (
        first.size.sequences / second.size.sequences,
        first.size.trained / second.size.trained,
        first.size.processed / second.size.processed,
        first.updates / second.updates,
        first.seconds / second.seconds,
        first.cpu_seconds / second.cpu_seconds,
    )
    return [*rows, f"| | **times** | {' | '.join(f'**{value:.2f}**' for value in times)} |"]


def _same(of: Measured) -> str:
    first, second = (of.figures[name] for name in BUILDERS)
    gap = max(first.logprob_gap, second.logprob_gap)
    return (
        f"| {of.calls / first.size.sessions:.1f} | {first.size.processed / second.size.processed:.2f} "
        f"| {of.expected_ratio:.2f} | {gap:.0e} | {of.gradient_gap:.0e} |"
    )
