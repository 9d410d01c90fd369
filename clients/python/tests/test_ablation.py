"""test/bench/ablation without torch and without a mesh: traces as groups, what they hold, the table."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

ABLATION = pathlib.Path(__file__).parents[3] / "test/bench/ablation"
sys.path.insert(0, str(ABLATION))

from table import Figures, Measured, put, table  # noqa: E402
from traces import Size, expected_ratio, groups_of, size  # noqa: E402

SAMPLED = 2


def session(name, *, first, each, calls):
    """Lines of both builders for a conversation of `first` ids before its calls, and of `each` more a call."""
    ids = list(range(first + each * calls))
    ends = [first + each * (call + 1) for call in range(calls)]
    per_request = [line(name, ids[: end - SAMPLED], ids[end - SAMPLED : end], [1] * SAMPLED) for end in ends]
    mask = [int(index >= each - SAMPLED) for _ in range(calls) for index in range(each)]
    return per_request, [line(name, ids[:first], ids[first:], mask)]


def line(name, prompt, response, mask):
    logprobs = [-0.5 * trained for trained in mask]
    return {
        "session_id": name,
        "prompt_ids": prompt,
        "response_ids": response,
        "loss_mask": mask,
        "logprobs": logprobs,
    }


def told(name, task="t", reward=1.0):
    return {"session_id": name, "task_id": task, "reward": reward}


def test_each_session_gets_its_traces_and_each_task_is_a_group():
    sessions = [told("a", "one"), told("b", "one", 0.0), told("c", "two", None)]
    traces = [line("b", [1], [2, 3], [0, 1]), line("a", [4], [5], [1]), line("b", [6], [7], [1])]
    one, two = groups_of(sessions, traces)
    known = [(each.session_id, each.reward, len(each.traces)) for each in one]
    assert known == [("a", 1.0, 1), ("b", 0.0, 2)]
    # A session of which nothing could be built is there, as the stream has it.
    assert [(each.session_id, each.reward, len(each.traces)) for each in two] == [("c", None, 0)]
    first = one[1].traces[0]
    for column, values, kind in (
        (first.prompt_ids, [1], np.int32),
        (first.response_ids, [2, 3], np.int32),
        (first.loss_mask, [0, 1], np.uint8),
        (first.logprobs, [0, -0.5], np.float32),
    ):
        assert column.dtype == kind
        assert column.tolist() == values


def test_a_trace_of_an_unknown_session_is_an_error():
    with pytest.raises(KeyError):
        groups_of([told("a")], [line("b", [1], [2], [1])])


def test_what_is_trained_is_the_same_and_what_is_processed_is_not():
    per_request, merged = session("a", first=10, each=5, calls=4)
    sizes = [size(groups_of([told("a")], lines)) for lines in (per_request, merged)]
    assert sizes == [Size(1, 4, 4 * SAMPLED, 15 + 20 + 25 + 30), Size(1, 1, 4 * SAMPLED, 30)]


def test_a_trace_that_trains_nothing_is_not_processed():
    lines = [line("a", [1], [2], [0]), line("a", [1], [2, 3], [1, 1])]
    assert size(groups_of([told("a")], lines)) == Size(1, 1, 2, 3)


@pytest.mark.parametrize(
    ("first", "calls", "times"), [(0, 1, 1.0), (0, 5, 3.0), (0, 20, 10.5), (10_000, 20, 19.9)]
)
def test_the_ratio_is_half_the_calls_or_all_of_them_by_what_is_said_before(first, calls, times):
    per_request, merged = session("a", first=first, each=5, calls=calls)
    groups = [groups_of([told("a")], lines) for lines in (per_request, merged)]
    assert expected_ratio(groups[0]) == pytest.approx(times, abs=0.1)
    assert expected_ratio(groups[0]) == size(groups[0]).processed / size(groups[1]).processed


def test_sessions_count_by_their_ids_and_one_without_traces_does_not():
    long, _ = session("a", first=0, each=5, calls=19)
    short, _ = session("b", first=0, each=5, calls=1)
    groups = groups_of([told("a"), told("b"), told("c")], [*long, *short])
    assert expected_ratio(groups) == (19 * 10 * 5 + 5) / (19 * 5 + 5)


def test_the_table_goes_into_its_part_of_the_document():
    figures = {
        "per_request": Figures(Size(64, 1200, 7000, 240_000), 120, 12.0, 10.0, 1e-6),
        "prefix_merging": Figures(Size(64, 80, 7000, 24_000), 15, 1.5, 1.0, 2e-6),
    }
    text = table([Measured(1280, figures, expected_ratio=10.25, gradient_gap=3e-7)])
    assert "| 64, 1,280 | `prefix_merging` | 80 | 7,000 | 24,000 | 15 | 1.50 | 1.00 |" in text
    assert "| | **times** | **15.00** | **1.00** | **10.00** | **8.00** | **8.00** | **10.00** |" in text
    assert "| 20.0 | 10.00 | 10.25 | 2e-06 | 3e-07 |" in text
    document = "before\n<!-- begin: ablation -->\nold\n<!-- end: ablation -->\nafter\n"
    once = put(document, text)
    assert once == put(once, text)
    assert once.startswith("before\n") and once.endswith("after\n") and "old" not in once and text in once
