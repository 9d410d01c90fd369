"""Groups of which nothing can be trained: a trainer that waits for samples, or steps without any, tells of none."""

from __future__ import annotations

import logging
import time

from ...batches import Batch
from ...limits import UNTRAINED_WARN_S

_log = logging.getLogger("polar_mesh")


class Untrained:
    """Says in the log that they come and why: the first one, and while none is better once in a while."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._told = float("-inf")

    def look_at(self, batch: Batch) -> None:
        """For each group, in the order in which they come."""
        self._in_a_row = 0 if _trains(batch) else self._in_a_row + 1
        if not self._in_a_row or time.monotonic() - self._told < UNTRAINED_WARN_S:
            return
        self._told = time.monotonic()
        told = "groups in a row that train nothing: %d; the last one, of task %s: %s"
        _log.warning(told, self._in_a_row, batch.task_id, _why(batch))


def _trains(batch: Batch) -> bool:
    return any(
        one.reward_of(trace) is not None and trace.loss_mask.any() for one in batch.trajectories for trace in one.traces
    )


def _why(batch: Batch) -> str:
    for one in batch.trajectories:
        if one.failure is not None:
            return f"{one.failure.reason}: {one.failure.message}"
    return "no session has both a reward and a trained token"
