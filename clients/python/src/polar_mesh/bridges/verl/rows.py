"""Trajectories as the rows of verl: ids, mask and logprobs in a window of a prompt's and a response's length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from ...batches import Trace, Trajectory


@dataclass(frozen=True)
class Window:
    """Ids that a row has room for: ``rollout.prompt_length`` and ``rollout.response_length``."""

    prompt: int
    response: int

    @property
    def ids(self) -> int:
        return self.prompt + self.response


@dataclass(frozen=True)
class Played:
    """A session that has ended, with the seconds that its harness and its evaluation took."""

    trajectory: Trajectory
    run_s: float = 0.0
    evaluate_s: float = 0.0


def rows(played: Played, window: Window, empty_id: int, *, every: bool) -> list[AgentLoopOutput]:
    """Of the trace with most trained ids, or of every trace, that one last. None: the session has no reward.

    A prompt that is longer than the window's goes on in the response, masked: no id is left out before one that is
    trained. What lies behind the window is cut off. Raises ValueError for traces with images, whose pixels verl's trainers
    need and nobody has here.
    """
    trajectory = played.trajectory
    traces = sorted((one for one in trajectory.traces if _trained(one)), key=_trained)
    rewards = [trajectory.reward_of(one) for one in traces] or [trajectory.reward]
    if any(reward is None for reward in rewards):
        return []
    if any(trace.images for trace in traces):
        raise ValueError(f"session {trajectory.session_id} has images, which this bridge does not bring to verl")
    first = 0 if every else max(0, len(traces) - 1)
    kept = traces[first:]
    counts = {
        "polar_traces_left_out": len(traces) - len(kept),
        "polar_trained_tokens_left_out": sum(map(_trained, traces[:first])),
        "polar_trained_tokens_cut_off": sum(_behind(trace, window) for trace in kept),
    }
    common = _common(played, counts)
    if not kept:
        # It trains nothing; its reward is one of those that others are compared with.
        nothing = {"prompt_ids": [empty_id], "response_ids": [empty_id], "response_mask": [0], "response_logprobs": [0.0]}
        return [AgentLoopOutput(**nothing, **common, reward_score=rewards[0], num_turns=0)]
    return [
        AgentLoopOutput(**_columns(trace, window), **common, reward_score=reward, num_turns=2 * len(trace.spans))
        for trace, reward in zip(kept, rewards[first:], strict=True)
    ]


def _trained(trace: Trace) -> int:
    return int(np.count_nonzero(trace.loss_mask))


def _room(trace: Trace, window: Window) -> int:
    """For ids of the response, behind what the prompt takes of its place."""
    return max(0, window.response - max(0, len(trace.prompt_ids) - window.prompt))


def _behind(trace: Trace, window: Window) -> int:
    """Trained ids behind the window."""
    return int(np.count_nonzero(trace.loss_mask[_room(trace, window) :]))


def _columns(trace: Trace, window: Window) -> dict[str, Any]:
    head, rest = trace.prompt_ids[: window.prompt], trace.prompt_ids[window.prompt :]

    def behind(context: npt.NDArray[Any], sampled: npt.NDArray[Any]) -> list[Any]:
        return np.concatenate([context, sampled])[: window.response].tolist()

    columns: dict[str, Any] = {
        "prompt_ids": head.tolist(),
        "response_ids": behind(rest, trace.response_ids),
        "response_mask": behind(np.zeros(len(rest), np.uint8), trace.loss_mask),
        "response_logprobs": behind(np.zeros(len(rest), np.float32), trace.logprobs),
    }
    if trace.routed_experts is not None:
        columns["routed_experts"] = trace.routed_experts.rows[: len(head) + len(columns["response_ids"])]
    return columns


def _common(played: Played, counts: dict[str, int]) -> dict[str, Any]:
    trajectory = played.trajectory
    return {
        "metrics": AgentLoopMetrics(generate_sequences=played.run_s, compute_score=played.evaluate_s),
        "extra_fields": {
            "polar_session_id": trajectory.session_id,
            "min_global_steps": trajectory.policy_version_min,
            "max_global_steps": trajectory.policy_version_max,
            "reward_extra_info": counts,
            "turn_scores": [],
            "tool_rewards": [],
        },
    }
