"""A trainer's weights to the engines, as a new policy version, while model calls are held."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ...policy import Mode, Pause, PolicyClient

#: Gets the named parameters and their policy version, brings them into every engine, and returns the engines' name
#: for them (``weight_version``), or None where they have none.
Load = Callable[[Iterator[tuple[str, Any]], int], "str | None"]


class WeightTransfer:
    """``WeightTransferProtocol`` of AsyncGRPOTrainer; ``rollout_func`` calls ``sync``.

    Versions go on from the mesh's present one: a trainer that starts anew does not count from 1 again.

    Args:
        load: See ``Load``; called in the trainer's main process, while the pause holds.
        mode: What becomes of calls in flight, see ``PolicyClient.paused``.
        timeout_s: Seconds for reaching the pause; then DeadlineExceeded, and the training ends.
    """

    def __init__(
        self, policy: PolicyClient, load: Load, *, mode: Mode = "drain", timeout_s: float = 60
    ) -> None:
        self._policy = policy
        self._load = load
        self._mode: Mode = mode
        self._timeout_s = timeout_s
        self._held = contextlib.ExitStack()
        self._pause: Pause | None = None

    def init_weight_transfer(self) -> None:
        """Called at the start of a training; nothing is to be set up."""

    def pause(self) -> None:
        """Hold model calls."""
        self._pause = self._held.enter_context(self._policy.paused(self._mode, timeout_s=self._timeout_s))

    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None:
        """Bring the parameters into the engines."""
        if self._pause is None:
            raise RuntimeError("send_weights without pause")
        version = self._policy.get_policy().policy.policy_version + 1
        self._pause.publish(version, self._load(iterator, version) or "")

    def resume(self) -> None:
        """Let calls go on, with the version that was sent."""
        self._pause = None
        self._held.close()

    def destroy(self) -> None:
        """End of the training. A pause that a failure has left is ended too."""
        self.resume()

    def sync(self, iterator: Iterator[tuple[str, Any]]) -> None:
        """All of it: pause, send, resume; resumes with the old version where sending fails."""
        self.pause()
        try:
            self.send_weights(iterator)
        finally:
            self.resume()
