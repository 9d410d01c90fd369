"""What a trainer has done, on disk, so that no group is trained on twice and none is left out."""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from .batches import Batch


class Journal:
    """One JSON line a step, in a file of the trainer's own; a step counts when its line is on the disk.

    A line is written after the step and before its batches are acknowledged::

        journal = polar_mesh.Journal("steps.jsonl")
        load(journal.last.get("checkpoint"))
        for batch in client.stream("trainer"):
            if batch in journal:       # Its step counts; the trainer was killed before its acknowledgement.
                batch.ack()
                continue
            optimizer_step(batch)
            journal.commit([batch], checkpoint=save())
            batch.ack()

    A trainer that is killed before the line is written comes back with the checkpoint before the step and gets its
    batches again; one that is killed after it finds them here. For one thread of one process.

    A batch is known by its id and by when it was complete: after a loss of data the mesh gives ids anew. One that a seek
    brings again is the same one. To train on it once more, from an older checkpoint, the lines behind that step are
    removed while no trainer has the file open; to train on all of them, a new file.

    Args:
        path: The file; made where it is not there. A last line that was torn when the machine went down is cut off; one
            that only lacks its end, as editors leave it, counts.

    Raises:
        ValueError: another line is none of a journal; the file is left as it is.
        RuntimeError: another trainer has it open: both would make each step.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        #: The last line: ``step``, ``batches`` (``[batch_id, ready_ms]`` of each) and what ``commit`` was given; empty
        #: before the first step.
        self.last: dict[str, Any] = {}
        self._done: set[tuple[int, int]] = set()
        self._lock = _Lock(self.path)
        self._file = open(self.path, "ab")
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @property
    def steps(self) -> int:
        """How many steps count."""
        return self.last.get("step", 0)

    def __contains__(self, batch: Batch) -> bool:
        """Whether a step that counts was made with the batch."""
        return _key(batch) in self._done

    def commit(self, batches: Sequence[Batch], **facts: Any) -> None:
        """Record a step with what is to be found again, such as its checkpoint; returns when it is on the disk.

        Args:
            facts: JSON values by any name but ``step``.
        """
        if "step" in facts:
            raise TypeError("step is the journal's own count: name that fact otherwise")
        keys = [_key(batch) for batch in batches]
        line = {"step": self.steps + 1, "batches": keys, **facts}
        self._append(json.dumps(line).encode() + b"\n")
        self.last = line
        self._done.update(keys)

    def close(self) -> None:
        """Close the file; another trainer may open it."""
        self._file.close()
        self._lock.release()

    def _load(self) -> None:
        written = self.path.read_bytes()
        whole = 0
        for number, line in enumerate(written.splitlines(keepends=True), 1):
            if not self._read(line, number):
                break
            whole += len(line)
        self._file.truncate(whole)
        if whole and not written[:whole].endswith(b"\n"):
            self._append(b"\n")
        # The name of a new file, too, is on the disk before a line in it counts.
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def _read(self, line: bytes, number: int) -> bool:
        """Whether it counts; what does not is the torn last one."""
        if not line.strip():
            return True
        try:
            last = json.loads(line)
            done = {(int(batch_id), int(ready_ms)) for batch_id, ready_ms in last["batches"]}
            self.last = {**last, "step": int(last["step"])}
        except (ValueError, TypeError, KeyError) as error:
            # A torn line may end in zeros, where the disk had not got its bytes yet.
            if not line.endswith(b"\n") and _HEAD.startswith(line[: len(_HEAD)].rstrip(b"\0")):
                return False
            raise ValueError(f"{self.path}: line {number} is none of a journal: {error!r}") from error
        self._done |= done
        return True

    def _append(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Lock:
    """One trainer has the file; it ends with its process. What that has forked does not hold it: workers that outlive a
    trainer for a while would keep the next one out."""

    def __init__(self, path: Path) -> None:
        if sys.platform == "win32":
            return
        import fcntl

        self._file = open(path, "ab", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            told = "another trainer has this journal open, or this one has twice: end it, or close it, first"
            raise RuntimeError(f"{path}: {told}") from None
        except OSError:
            pass  # Some file systems of networks have no locks.
        os.register_at_fork(after_in_child=partial(_release, weakref.ref(self)))

    def release(self) -> None:
        if sys.platform != "win32":
            self._file.close()


def _release(known: weakref.ref[_Lock]) -> None:
    lock = known()
    if lock is not None:
        lock.release()


#: How a line begins.
_HEAD = b'{"step": '
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _key(batch: Batch) -> tuple[int, int]:
    """Its id, and when it was complete, in ms since 1970."""
    return batch.batch_id, (batch.ready_time - _EPOCH) // timedelta(milliseconds=1)
