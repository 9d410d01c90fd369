"""The picture and the table of docs/learning.md, from docs/learning.jsonl.

python report.py        draws them anew
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import curves
from curves import DOCS, Row, Summary

DOCUMENT, PICTURE = DOCS / "learning.md", DOCS / "learning.svg"
TABLE = re.compile(r"(?<=<!-- runs -->\n).*?(?=<!-- end -->)", re.DOTALL)

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 360, 50, 36, 150, 45
COLOURS = ("#1f77b4", "#2ca02c", "#9467bd", "#d62728", "#8c564b", "#e377c2")
COLUMNS = (
    *("run", "minutes", "steps", "sessions"),
    *("reward at the start", "at the end", "twice the start after", "change ± 2 standard errors"),
)
FONT = 'font-family="sans-serif" font-size="12"'
#: The control.
SHUFFLED = "shuffled rewards"


def record(runs: Mapping[str, Iterable[Row]]) -> None:
    """Put these runs in the place of earlier ones of the same names, and draw."""
    curves.write({**curves.read(), **runs})
    draw()


def draw() -> None:
    runs = curves.read()
    PICTURE.write_text(picture(runs))
    DOCUMENT.write_text(TABLE.sub(lambda _: f"\n{table(runs)}\n\n", DOCUMENT.read_text()))


def table(runs: Mapping[str, Sequence[Row]]) -> str:
    rows = [_line(name, curves.summary(rows)) for name, rows in runs.items()]
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows])


def _line(name: str, of: Summary) -> str:
    twice = "never" if of.twice_after is None else f"{of.twice_after:.0f} s"
    counts = f"{of.minutes:.1f} | {of.steps} | {of.sessions}"
    change = f"{of.change:+.2f} ± {of.change_error:.2f}"
    return f"| {name} | {counts} | {of.start:.2f} | {of.end:.2f} | {twice} | {change} |"


def picture(runs: Mapping[str, Sequence[Row]]) -> str:
    """Reward by minutes, a line for each run."""
    minutes = max((row["seconds"] / 60 for rows in runs.values() for row in rows), default=1)
    parts = [*_axes(minutes)]
    for at, (name, rows) in enumerate(runs.items()):
        colour = "#999" if name == SHUFFLED else COLOURS[at % len(COLOURS)]
        points = " ".join(f"{_x(row['seconds'] / 60, minutes):.1f},{_y(row['reward']):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{TOP + 14 + 18 * at}" fill="{colour}">{name}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
            "<title>Mean reward of each step by time</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _axes(minutes: float) -> Iterable[str]:
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tenths / 10}</text>'
    whole = max(1, round(minutes / 6))
    for minute in range(0, int(minutes) + 1, whole):
        x = _x(minute, minutes)
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{minute}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">minutes</text>'
    yield f'<text x="{LEFT - 36}" y="16">mean reward</text>'


def _x(minute: float, minutes: float) -> float:
    return LEFT + minute / minutes * (WIDTH - LEFT - RIGHT)


def _y(reward: float) -> float:
    return TOP + (1 - reward) * (HEIGHT - TOP - BOTTOM)


if __name__ == "__main__":
    draw()
