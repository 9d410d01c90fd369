"""One export from its source to its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..batches import Trajectory
from ..errors import FailedPrecondition, PolarError
from .rows import ROWS, Row
from .rule import Rule
from .schema import COLUMNS
from .source import GROUPS_MAX, ConsumerSource, Group, Source, TaskSource, queue_source
from .store import FORMATS, ExportError, Store

if TYPE_CHECKING:
    from ..client import Client

#: A part ends with the group that reaches one of these; larger groups are parts of their own.
PART_IDS = 4_000_000
PART_CHARS = 64_000_000
PART_ROWS = 50_000

_DEFAULT_RULE = Rule()
_ID_COLUMNS = [one.name for one in COLUMNS["traces"] if one.kind == "ids"]


@dataclass(frozen=True)
class Progress:
    """How far an export is."""

    groups: int
    #: None where it is not known.
    groups_total: int | None
    rows: int
    parts: int


@dataclass(frozen=True)
class Result:
    """What is in the folder, and what this call added."""

    parts: int
    rows: int
    groups: int
    #: Sessions, or groups of a preference set, that gave no row, by reason.
    dropped: Mapping[str, int]
    groups_added: int
    rows_added: int
    #: Groups that have not ended: run the same export again.
    unfinished: int
    #: Groups that have ended and are not in the store: retention has taken them, or they come in a moment.
    absent: int


@dataclass
class _Part:
    """What goes into the next part."""

    #: Batch ids by the keys of its groups, which are not held themselves.
    groups: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    ids: int = 0
    chars: int = 0

    def take(self, group: Group, rows_of: Callable[[Group, Counter[str]], list[Row]]) -> bool:
        """False where the group is not in the store."""
        dropped: Counter[str] = Counter()
        try:
            rows = rows_of(group, dropped)
        except FailedPrecondition:
            return False
        self.groups[group.key] = group.batch_id
        self.rows += rows
        self.dropped += dropped
        self.ids += sum(len(row[name]) for row in rows for name in _ID_COLUMNS if name in row)
        self.chars += sum(map(_chars, rows))
        return True

    @property
    def full(self) -> bool:
        return (
            self.ids >= PART_IDS
            or self.chars >= PART_CHARS
            or len(self.rows) >= PART_ROWS
            or len(self.groups) >= GROUPS_MAX
        )


def _chars(value: Any) -> int:
    """Length of all text in it, and of bytes."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_chars, value.values()))
    return sum(map(_chars, value)) if isinstance(value, (list, tuple)) else 0


def export(
    client: Client,
    folder: str | Path,
    *,
    what: str = "traces",
    format: str = "jsonl",
    tasks: Sequence[str] = (),
    queue: str | None = None,
    consumer: str | None = None,
    rule: Rule = _DEFAULT_RULE,
    idle_s: float = 5.0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Write what is missing in ``folder``; safe to repeat, and to go on with after any interruption.

    Args:
        what: traces, sft or preference.
        format: jsonl or parquet; parquet needs ``polar-mesh[export]``.
        tasks: Ids of tasks, in this order.
        queue: In place of tasks: all of this queue, the oldest one first.
        consumer: In place of tasks: what this consumer of the stream has not acknowledged. It is acknowledged when it
            is written, so that the consumer is for the export alone.
        rule: Which sessions are exported.
        idle_s: Seconds without a batch, or part of one, after which the mesh is asked whether a consumer has more.
        on_progress: Called after each group.

    Raises:
        ExportError: the folder holds another export, the disk is full, pyarrow is missing.
        ValueError: no source or several, unknown ``what`` or ``format``.
        PolarError: the mesh does not answer; of a consumer, also where its stream broke in the last ``idle_s`` seconds.
    """
    if what not in ROWS or format not in FORMATS:
        raise ValueError(f"what is one of {', '.join(ROWS)}, format one of {', '.join(FORMATS)}")
    if isinstance(tasks, str):
        raise ValueError("tasks is a list of ids")
    if (len(tasks) > 0) + (queue is not None) + (consumer is not None) != 1:
        raise ValueError("one of tasks, queue and consumer is needed")
    _check_arrow(format)
    with Store(Path(folder), what, format, COLUMNS[what], rule.document()) as store:
        source = _source(client, tasks, queue, consumer, idle_s)
        before = sum(part["rows"] for part in store.parts)
        added = _fill(store, source, _rows_of(client, what, rule), on_progress)
        return _result(store, source, added, before)


def _check_arrow(format: str) -> None:
    if format != "parquet":
        return
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ExportError("Parquet needs pyarrow: pip install 'polar-mesh[export]'") from error


def _source(
    client: Client, tasks: Sequence[str], queue: str | None, consumer: str | None, idle_s: float
) -> Source:
    if consumer is not None:
        return ConsumerSource(client, consumer, idle_s)
    return TaskSource(client, tasks) if queue is None else queue_source(client, queue)


def _rows_of(client: Client, what: str, rule: Rule) -> Callable[[Group, Counter[str]], list[Row]]:
    def messages(trajectory: Trajectory) -> list[dict[str, Any]]:
        return client.export_session(trajectory.session_id, "messages", attempt=trajectory.attempt)

    return lambda group, dropped: list(ROWS[what](group.read(dropped), rule, messages, dropped))


def _fill(
    store: Store,
    source: Source,
    rows_of: Callable[[Group, Counter[str]], list[Row]],
    on_progress: Callable[[Progress], None] | None,
) -> int:
    done = store.done
    before = len(done)
    part = _Part()
    count = 0
    groups = source.groups()
    while True:
        try:
            group = next(groups, None)
        except PolarError:
            # What a consumer gave is kept; it is acknowledged where it comes again, since nobody may be there now.
            if part.groups:
                store.add(part.rows, part.groups, part.dropped)
            raise
        if group is None:
            break
        count += 1
        if group.key in part.groups:
            # It came again, behind a seek, say: its part is not on the disk yet, and acknowledges it then.
            part.groups[group.key] = group.batch_id
        elif group.key in done:
            source.written([group.batch_id])
        elif part.take(group, rows_of):
            done.add(group.key)
            if part.full:
                part = _close(store, source, part)
        else:
            source.absent += 1
        if on_progress is not None:
            rows_so_far = sum(one["rows"] for one in store.parts) + len(part.rows)
            on_progress(Progress(count, source.total, rows_so_far, len(store.parts)))
    if part.groups:
        _close(store, source, part)
    return len(done) - before


def _close(store: Store, source: Source, part: _Part) -> _Part:
    store.add(part.rows, part.groups, part.dropped)
    source.written(list(part.groups.values()))
    return _Part()


def _result(store: Store, source: Source, added: int, rows_before: int) -> Result:
    dropped: Counter[str] = Counter()
    for part in store.parts:
        dropped.update(part["dropped"])
    rows = sum(part["rows"] for part in store.parts)
    return Result(
        parts=sum(part["file"] is not None for part in store.parts),
        rows=rows,
        groups=len(store.done),
        dropped=dict(sorted(dropped.items())),
        groups_added=added,
        rows_added=rows - rows_before,
        unfinished=source.unfinished,
        absent=source.absent,
    )
