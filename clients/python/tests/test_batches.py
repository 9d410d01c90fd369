"""Batches from messages: shapes, types, values, no copies."""

from __future__ import annotations

import base64
import hashlib
import json
import math

import numpy as np
import pytest
from support import batch

from polar_mesh import Image, errors, image_bytes, task_spec
from polar_mesh.batches import read_batch
from polar_mesh.gen.polar.common.v1.failure_pb2 import BOUNDARY_SANDBOX, Failure
from polar_mesh.gen.polar.common.v1.session_pb2 import OUTCOME_COMPLETED, OUTCOME_INFRASTRUCTURE_ERROR
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import (
    DRIFT_KIND_RETOKENISED,
    CallSpan,
    Drift,
    Trace,
    TraceExperts,
    TraceImage,
    Trajectory,
    TrajectoryBatch,
)


def read(message: TrajectoryBatch):
    return read_batch(message, lambda batches: None)


def test_columns_are_read_only_views_of_one_copy():
    trace = read(batch(1, tokens=6)).trajectories[1].traces[0]
    for column in (trace.prompt_ids, trace.response_ids, trace.loss_mask, trace.logprobs):
        assert not column.flags.owndata
        assert not column.flags.writeable
    assert [trace.prompt_ids.dtype, trace.response_ids.dtype] == [np.int32, np.int32]
    assert [trace.loss_mask.dtype, trace.logprobs.dtype] == [np.uint8, np.float32]
    assert trace.response_ids.tolist() == [1100, 1101, 1102, 1103, 1104, 1105]
    assert trace.loss_mask.tolist() == [0, 1, 0, 1, 0, 1]
    assert trace.logprobs[1] == np.float32(-1101 / 7)


def experts_of(**changes) -> TrajectoryBatch:
    told = {"rows": bytes(range(24)), "known": b"\1\1\0", "layers": 4, "top_k": 2, "item_bytes": 1} | changes
    ids = np.arange(3, dtype="<i4").tobytes()
    trace = Trace(prompt_ids=ids[:4], response_ids=ids[4:], loss_mask=b"\0\1", logprobs=bytes(8))
    trace.routed_experts.CopyFrom(TraceExperts(**told))
    return TrajectoryBatch(trajectories=[Trajectory(traces=[trace])])


def test_routed_experts_are_a_view_with_a_row_for_each_id():
    told = read(experts_of()).trajectories[0].traces[0].routed_experts
    assert (told.rows.dtype, told.rows.shape, told.known.tolist()) == (np.uint8, (3, 4, 2), [1, 1, 0])
    assert told.rows[1, 2].tolist() == [12, 13]
    assert not told.rows.flags.writeable
    assert not told.rows.flags.owndata
    wide = read(experts_of(layers=2, item_bytes=2)).trajectories[0].traces[0].routed_experts
    assert (wide.rows.dtype, wide.rows.shape) == (np.uint16, (3, 2, 2))
    assert wide.rows[0, 0, 1] == 2 + 256 * 3
    assert read(batch(1)).trajectories[0].traces[0].routed_experts is None


@pytest.mark.parametrize("change", [{"layers": 5}, {"item_bytes": 3}, {"known": b"\1"}, {"rows": b"\0" * 23}])
def test_routed_experts_that_do_not_fit_are_damage(change):
    with pytest.raises(errors.DataLoss):
        read(experts_of(**change))


def test_a_trace_names_its_images_whose_bytes_are_asked_for():
    png = b"\x89PNG not really"
    digest = hashlib.sha256(png).hexdigest()
    sent = TraceImage(digest=digest, media_type="image/png", message_digest="m", part=1, size_bytes=len(png))
    trace = Trace(images=[sent, TraceImage(url="https://example.test/a.png", message_digest="m", part=2)])
    (got,) = read(TrajectoryBatch(trajectories=[Trajectory(traces=[trace])])).trajectories[0].traces
    assert got.images[0] == Image(digest, "image/png", "", "m", 1, len(png))
    assert (got.images[1].digest, got.images[1].url) == ("", "https://example.test/a.png")
    lines = [{"digest": digest, "data": base64.b64encode(png).decode()}]
    assert image_bytes(lines)[got.images[0].digest] == png
    assert read(batch(1)).trajectories[0].traces[0].images == ()


def test_it_prints_as_a_line():
    """A group has a million numbers; a trainer that prints it wants to know which one it is."""
    message = batch(7, tokens=100_000)
    got = read_batch(message, None)
    assert repr(got) == (
        "Batch(7, task t-7, group g0, rewards=[0.0, 1.0], policy_version=0, delivery_count=0)"
    )
    (trajectory, _) = got.trajectories
    assert repr(trajectory).startswith("Trajectory(s-7-0, ")
    assert repr(trajectory.traces[0]) == (
        "Trace(prompt_ids=int32[50000], response_ids=int32[100000], trained=50000, calls=0, reward=None)"
    )


def test_arrays_outlive_their_message():
    message = batch(1)
    trace = read(message).trajectories[0].traces[0]
    message.Clear()
    assert trace.response_ids[0] == 1000


def test_values_keep_every_bit():
    bits = np.array([0x00000001, 0x80000000, 0x7FC00001, 0xFF800000, 0x3F800001], dtype="<u4")
    ids = np.array([-(2**31), -1, 0, 1, 2**31 - 1], dtype="<i4")
    trace = Trace(response_ids=ids.tobytes(), loss_mask=b"\0\1\2\3\xff", logprobs=bits.tobytes())
    got = read(TrajectoryBatch(batch_id=2**63 + 1, trajectories=[Trajectory(traces=[trace])]))
    assert got.batch_id == 2**63 + 1
    columns = got.trajectories[0].traces[0]
    assert columns.logprobs.view("<u4").tolist() == bits.tolist()
    assert columns.response_ids.tolist() == ids.tolist()
    assert columns.loss_mask.tolist() == [0, 1, 2, 3, 255]


def test_a_reward_of_zero_is_not_no_reward():
    failure = Failure(boundary=BOUNDARY_SANDBOX, reason="SANDBOX_FAILED", message="m", infrastructure=True)
    message = TrajectoryBatch(
        trajectories=[
            Trajectory(outcome=OUTCOME_COMPLETED, reward=0.0),
            Trajectory(outcome=OUTCOME_INFRASTRUCTURE_ERROR, failure=failure),
            Trajectory(outcome=99),
        ]
    )
    got = read(message)
    assert [one.reward for one in got.trajectories] == [0.0, None, None]
    assert [one.outcome for one in got.trajectories] == ["completed", "infrastructure_error", "99"]
    assert got.rewards[0] == 0.0
    assert math.isnan(got.rewards[1])
    assert got.trajectories[0].failure is None
    assert got.trajectories[1].failure.boundary == "sandbox"
    assert got.trajectories[1].failure.reason == "SANDBOX_FAILED"
    assert got.trajectories[1].traces == ()


def test_everything_else_of_a_trajectory_is_there():
    message = Trajectory(session_id="s", sample_index=3, attempt=2, builder="prefix_merging")
    message.policy_version_min, message.policy_version_max = 7, 9
    message.stats.masked_tokens["side"] = 4
    message.stats.trained_tokens = 5
    message.evaluation.update({"flags": ["a"], "n": 1})
    message.builder_config.update({"truncated": "mask"})
    message.drift.append(Drift(call_id="c", kind=DRIFT_KIND_RETOKENISED, first_difference=8))
    span = CallSpan(call_id="c", start=1, length=2, finish_reason="stop", policy_version=7)
    message.traces.append(Trace(spans=[span]))
    whole = TrajectoryBatch(trajectories=[message], redelivered=True)
    whole.metadata.update({"step": 4})
    whole.ready_time.FromJsonString("2026-01-02T03:04:05.5Z")
    got = read(whole)
    (one,) = got.trajectories
    assert (one.sample_index, one.attempt, one.builder) == (3, 2, "prefix_merging")
    assert (one.policy_version_min, one.policy_version_max) == (7, 9)
    assert (one.stats.masked_tokens, one.stats.trained_tokens) == ({"side": 4}, 5)
    assert one.evaluation == {"flags": ["a"], "n": 1}
    assert one.builder_config == {"truncated": "mask"}
    assert (one.drift[0].kind, one.drift[0].first_difference) == ("retokenised", 8)
    assert (one.traces[0].spans[0].finish_reason, one.traces[0].spans[0].policy_version) == ("stop", 7)
    assert (got.redelivered, got.metadata) == (True, {"step": 4})
    assert got.ready_time.isoformat() == "2026-01-02T03:04:05.500000+00:00"


def test_every_id_has_the_policy_version_that_sampled_it():
    first = CallSpan(call_id="a", start=0, length=2, policy_version=7)
    second = CallSpan(call_id="b", start=3, length=3, policy_version=9)
    second.policy_runs.add(policy_version=8, start=3, length=1)
    second.policy_runs.add(policy_version=9, start=4, length=2)
    message = Trace(response_ids=b"\0" * 24, loss_mask=b"\1" * 6, logprobs=b"\0" * 24, spans=[first, second])
    batch = read(TrajectoryBatch(trajectories=[Trajectory(session_id="s", traces=[message])]))
    trace = batch.trajectories[0].traces[0]
    assert trace.policy_versions.dtype == np.int64
    assert trace.policy_versions.tolist() == [7, 7, -1, 8, 9, 9]
    assert [run.policy_version for run in trace.spans[1].policy_runs] == [8, 9]


@pytest.mark.parametrize(
    "trace",
    [
        Trace(response_ids=b"\0" * 8, loss_mask=b"\0", logprobs=b"\0" * 8),
        Trace(response_ids=b"\0" * 8, loss_mask=b"\0\0", logprobs=b"\0" * 4),
        Trace(prompt_ids=b"\0" * 5),
    ],
)
def test_columns_that_do_not_fit_are_data_loss(trace):
    message = TrajectoryBatch(trajectories=[Trajectory(session_id="s-1", traces=[trace])])
    with pytest.raises(errors.DataLoss, match="s-1"):
        read(message)


def test_free_form_numbers_come_back_as_they_were_given():
    given = {"row": 2**53, "of": {"n": 3, "scores": [0.5, -7, True, None]}, "text": "1.0", "large": 1e300}
    message = Trajectory()
    whole = TrajectoryBatch(metadata=task_spec({"metadata": given}).metadata)
    message.evaluation.update(given)
    message.builder_config.update(given)
    whole.trajectories.append(message)
    got = read(whole)
    for found in (got.metadata, got.trajectories[0].evaluation, got.trajectories[0].builder_config):
        assert found == given
        # 3 == 3.0, and no index of a list.
        assert json.dumps(found, sort_keys=True) == json.dumps(given, sort_keys=True)
