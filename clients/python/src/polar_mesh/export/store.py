"""The folder of an export: whole parts, and a state that says what is in them.

A part is written under another name and renamed when it is whole and on the disk; then the state is. An export that
ends in between, for whatever reason, goes on from the state, and what it makes is the same, byte for byte.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from io import BufferedWriter
from pathlib import Path
from typing import Any

from .schema import SCHEMA_VERSION, Column, arrow_table, dataset_card, json_line

STATE = "export.json"
CARD = "README.md"
FORMATS = {"jsonl": "jsonl", "parquet": "parquet"}


class ExportError(Exception):
    """An export that cannot go on; what it has written before is whole."""


class Store:
    """The folder, for one export at a time. Use it in ``with``."""

    def __init__(self, folder: Path, what: str, format: str, columns: Sequence[Column], rule: Mapping[str, Any]) -> None:
        self.folder = folder
        self._what = what
        self._format = format
        self._columns = columns
        self._head = {"schema_version": SCHEMA_VERSION, "what": what, "format": format, "rule": dict(rule)}
        self.parts: list[dict[str, Any]] = []

    def __enter__(self) -> Store:
        with _disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise ExportError(f"another export writes to {self.folder}") from error
        try:
            self._open()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    @property
    def done(self) -> set[str]:
        """Keys of the groups that are in parts."""
        return {key for part in self.parts for key in part["groups"]}

    def add(self, rows: Sequence[Mapping[str, Any]], groups: Iterable[str], dropped: Mapping[str, int]) -> None:
        """Write the next part. Raises ExportError where the disk does not take it; no torn file stays."""
        name = None
        digest = ""
        if rows:
            name = self._free_name()
            digest = self._write(self.folder / name, self._bytes(rows))
        part = {"file": name, "rows": len(rows), "sha256": digest, "groups": list(groups), "dropped": dict(dropped)}
        self._save([*self.parts, part])

    def _open(self) -> None:
        state = self.folder / STATE
        for torn in (*self.folder.glob("part-*.tmp"), state.with_name(f"{STATE}.tmp")):
            torn.unlink(missing_ok=True)
        if not state.exists() and any(self.folder.iterdir()):
            raise ExportError(f"{self.folder} holds other things than an export: take a folder of its own")
        found: dict[str, Any] = _read(state) if state.exists() else {**self._head, "parts": []}
        differs = [key for key, value in self._head.items() if found.get(key) != value]
        if differs:
            told = ", ".join(f"{key} {found.get(key)!r}, not {self._head[key]!r}" for key in differs)
            raise ExportError(f"{self.folder} holds another export ({told}): take another folder")
        # A part that somebody removed is made again.
        self.parts = [one for one in found["parts"] if one["file"] is None or (self.folder / one["file"]).exists()]
        if not state.exists():
            self._save([])
        if not (self.folder / CARD).exists():
            card = dataset_card(self._what, self._columns, f"part-*.{FORMATS[self._format]}")
            self._write(self.folder / CARD, [card.encode()])

    def _free_name(self) -> str:
        taken = {part["file"] for part in self.parts}
        number = next(n for n in range(len(taken) + 1) if self._name(n) not in taken)
        return self._name(number)

    def _name(self, number: int) -> str:
        return f"part-{number:05d}.{FORMATS[self._format]}"

    def _bytes(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[bytes | memoryview]:
        if self._format == "jsonl":
            return (f"{json_line(self._columns, row)}\n".encode() for row in rows)
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = pa.BufferOutputStream()
        pq.write_table(arrow_table(self._what, self._columns, rows), buffer, compression="zstd")
        return [memoryview(buffer.getvalue())]

    def _save(self, parts: list[dict[str, Any]]) -> None:
        parts = sorted(parts, key=lambda one: (one["file"] is None, one["file"] or ""))
        text = json.dumps({**self._head, "parts": parts}, indent=1)
        self._write(self.folder / STATE, [text.encode()])
        self.parts = parts

    def _write(self, path: Path, pieces: Iterable[bytes | memoryview]) -> str:
        """Whole or not at all; returns the SHA-256 of it."""
        torn = path.with_name(f"{path.name}.tmp")
        digest = hashlib.sha256()
        with _disk(self.folder):
            try:
                with open(torn, "wb") as file:
                    for piece in pieces:
                        digest.update(piece)
                        file.write(piece)
                    _to_disk(file)
                torn.replace(path)
                os.fsync(self._lock)
            except BaseException:
                torn.unlink(missing_ok=True)
                raise
        return digest.hexdigest()


def _read(state: Path) -> dict[str, Any]:
    try:
        found = json.loads(state.read_text())
    except ValueError as error:
        raise ExportError(f"{state} is not what an export left ({error}): take another folder") from error
    if not isinstance(found, dict):
        raise ExportError(f"{state} is not what an export left: take another folder")
    return found


def _to_disk(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


class _disk:
    """Errors of the file system as one that says what to do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"no space left for {self._folder}: make room and run the same export again, it goes on"
            raise ExportError(message) from error
        raise ExportError(f"cannot write to {self._folder}: {error.strerror or error}") from error
