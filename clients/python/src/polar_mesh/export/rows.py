"""Rows of each kind of export from the sessions of one group, and why others give none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..batches import Trace, Trajectory
from ..errors import DataLoss, NotFound
from ..experts import RoutedExperts
from .conversations import Conversation, conversations, main_conversation
from .rule import Rule

Row = Mapping[str, Any]
#: Lines of ``Client.export_session(session_id, "messages")`` of the trajectory's attempt.
Messages = Callable[[Trajectory], Sequence[Mapping[str, Any]]]
#: Rows of a group; what is left out is counted by reason.
MakeRows = Callable[[Sequence[Trajectory], Rule, Messages, "Counter[str]"], Iterator[Row]]


def trace_rows(
    trajectories: Sequence[Trajectory], rule: Rule, messages: Messages, dropped: Counter[str]
) -> Iterator[Row]:
    """One row a trace."""
    for trajectory in _accepted(trajectories, rule, dropped):
        for number, trace in enumerate(trajectory.traces):
            yield {**_session(trajectory), **_versions(trajectory), **_trace(number, trace, trajectory)}


def sft_rows(
    trajectories: Sequence[Trajectory], rule: Rule, messages: Messages, dropped: Counter[str]
) -> Iterator[Row]:
    """One row a conversation that no other one goes on from."""
    for trajectory in _accepted(trajectories, rule, dropped):
        found, reason = _said(trajectory, messages)
        if not found:
            dropped[reason] += 1
        for one in found:
            talk = {"call_id": one.call_id, "messages": list(one.messages), "tools": one.tools}
            yield {**_session(trajectory), **_versions(trajectory), **talk}


def preference_rows(
    trajectories: Sequence[Trajectory], rule: Rule, messages: Messages, dropped: Counter[str]
) -> Iterator[Row]:
    """At most one row a group: its best session, which the rule must accept, against its worst one."""
    graded = [(one.reward, one) for one in trajectories if one.traces and one.reward is not None]
    accepted = [(reward, one) for reward, one in graded if rule.refuses(one) is None]
    if not accepted:
        dropped["no_chosen"] += 1
        return
    best, chosen = max(accepted, key=lambda pair: (pair[0], -pair[1].sample_index))
    worst, rejected = min(graded, key=lambda pair: (pair[0], pair[1].sample_index))
    if worst >= best:
        dropped["same_reward"] += 1
        return
    ends: list[Conversation] = []
    for one in (chosen, rejected):
        found, reason = _said(one, messages)
        end = main_conversation(found)
        if end is None:
            dropped[reason] += 1
            return
        ends.append(end)
    shared = _shared(ends[0], ends[1])
    if shared == 0:
        dropped["no_common_prompt"] += 1
        return
    yield {
        "task_id": chosen.task_id,
        "group_id": chosen.group_id,
        "prompt": list(ends[0].messages[:shared]),
        "chosen": list(ends[0].messages[shared:]),
        "rejected": list(ends[1].messages[shared:]),
        "tools": ends[0].tools,
        "chosen_session_id": chosen.session_id,
        "rejected_session_id": rejected.session_id,
        "chosen_reward": chosen.reward,
        "rejected_reward": rejected.reward,
    }


ROWS: Mapping[str, MakeRows] = {"traces": trace_rows, "sft": sft_rows, "preference": preference_rows}


def _accepted(trajectories: Sequence[Trajectory], rule: Rule, dropped: Counter[str]) -> Iterator[Trajectory]:
    for trajectory in trajectories:
        reason = rule.refuses(trajectory)
        if reason is None:
            yield trajectory
        else:
            dropped[reason] += 1


def _said(trajectory: Trajectory, messages: Messages) -> tuple[list[Conversation], str]:
    """Its conversations, and why there are none where there are none."""
    try:
        return conversations(messages(trajectory)), "no_messages"
    except (DataLoss, NotFound) as error:
        if error.retryable:
            raise
        return [], "lost"


def _session(trajectory: Trajectory) -> dict[str, Any]:
    names = ("session_id", "task_id", "group_id", "sample_index", "attempt", "outcome", "reward")
    return {name: getattr(trajectory, name) for name in names}


def _versions(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "policy_version_min": trajectory.policy_version_min,
        "policy_version_max": trajectory.policy_version_max,
        "drift": len(trajectory.drift),
    }


def _trace(number: int, trace: Trace, trajectory: Trajectory) -> dict[str, Any]:
    return {
        "builder": trajectory.builder,
        "trace": number,
        "prompt_ids": trace.prompt_ids,
        "response_ids": trace.response_ids,
        "loss_mask": trace.loss_mask,
        "logprobs": trace.logprobs,
        "trained_tokens": int(trace.loss_mask.sum()),
        "trace_reward": trajectory.reward_of(trace),
        "call_ids": [span.call_id for span in trace.spans],
        "masked_reasons": [span.masked_reason for span in trace.spans],
        "evaluation": json.dumps(trajectory.evaluation, ensure_ascii=False, sort_keys=True),
        "routed_experts": _experts(trace.routed_experts),
    }


def _experts(told: RoutedExperts | None) -> dict[str, Any] | None:
    """Rows of every id one behind the other, little-endian."""
    if told is None:
        return None
    _, layers, top_k = told.rows.shape
    shape = {"layers": layers, "top_k": top_k, "item_bytes": told.rows.dtype.itemsize}
    return {**shape, "rows": told.rows.tobytes(), "known": told.known}


def _shared(one: Conversation, other: Conversation) -> int:
    """Messages that both begin with; what follows them begins with the model's own in both."""
    most = min(len(one.messages), len(other.messages)) - 1
    count = 0
    while count < most and one.messages[count] == other.messages[count]:
        count += 1
    while count > 0 and not all(talk.messages[count]["role"] == "assistant" for talk in (one, other)):
        count -= 1
    return count
