"""What a trainer has done, on disk, so that no group is trained on twice and none is left out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
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
        path: The file; made where it is not there. A last line that was torn when the machine went down is cut off.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        #: The last line: ``step``, ``batches`` (``[batch_id, ready_ms]`` of each) and what ``commit`` was given; empty
        #: before the first step.
        self.last: dict[str, Any] = {}
        self._done: set[tuple[int, int]] = set()
        whole = 0
        if self.path.exists():
            for line in self.path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                self.last = json.loads(line)
                self._done.update(map(tuple, self.last["batches"]))
        self._file = open(self.path, "ab")
        self._file.truncate(whole)
        # The name of a new file, too, is on the disk before a line in it counts.
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    @property
    def steps(self) -> int:
        """How many steps count."""
        return self.last.get("step", 0)

    def __contains__(self, batch: Batch) -> bool:
        """Whether a step that counts was made with the batch."""
        return _key(batch) in self._done

    def commit(self, batches: Sequence[Batch], **facts: Any) -> None:
        """Record a step with what is to be found again, such as its checkpoint; returns when it is on the disk."""
        keys = [_key(batch) for batch in batches]
        line = {"step": self.steps + 1, "batches": keys, **facts}
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.last = line
        self._done.update(keys)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _key(batch: Batch) -> tuple[int, int]:
    """Its id, and when it was complete, in ms since 1970."""
    return batch.batch_id, (batch.ready_time - _EPOCH) // timedelta(milliseconds=1)
