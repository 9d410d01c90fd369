"""Which sessions are good enough to learn from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ..batches import Trajectory

#: Of sessions that can have traces.
OUTCOMES = ("completed", "timeout", "harness_error", "task_error")


@dataclass(frozen=True)
class Rule:
    """What a session must be to be exported; of a preference pair, the chosen one. Raises ValueError."""

    #: At least this reward.
    reward_min: float | None = None
    #: The evaluator told ``resolved``: all expected tests passed.
    tests_passed: bool = False
    #: Every call appends to its conversation, id for id.
    no_drift: bool = False
    #: It ended in this way: one of ``OUTCOMES``.
    outcome: str | None = None

    def __post_init__(self) -> None:
        if self.outcome not in (None, *OUTCOMES):
            raise ValueError(f"outcome {self.outcome!r} is none of {', '.join(OUTCOMES)}")
        if self.reward_min is not None and math.isnan(self.reward_min):
            raise ValueError("reward_min is no number: every session would do")

    def refuses(self, trajectory: Trajectory) -> str | None:
        """Why the session is left out, in a word; None where it is good."""
        if not trajectory.traces:
            return "no_traces"
        if self.outcome is not None and trajectory.outcome != self.outcome:
            return "outcome"
        if self.reward_min is not None:
            if trajectory.reward is None:
                return "no_reward"
            if trajectory.reward < self.reward_min:
                return "reward"
        if self.tests_passed and trajectory.evaluation.get("resolved") is not True:
            return "tests"
        if self.no_drift and trajectory.drift:
            return "drift"
        return None

    def document(self) -> dict[str, Any]:
        """As it stands in the state of an export."""
        return asdict(self)
