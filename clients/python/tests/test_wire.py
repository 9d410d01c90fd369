"""The stream's messages, read from their bytes: the same as protobuf reads, whatever wrote them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from support import batch, in_columns

from polar_mesh.batches import read_batch
from polar_mesh.errors import DataLoss
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import StreamTrajectoriesResponse
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import BatchColumns, CallSpan, Trace, TraceExperts
from polar_mesh.wire import StreamMessage, read_trace


class Nobody:
    def ack(self, batches):
        raise AssertionError

    def nack(self, batches, delay_s, reason):
        raise AssertionError


def told(message) -> list:
    """Everything that a trainer sees of a batch."""
    got = read_batch(message, Nobody())
    return [got.batch_id, got.task_id, got.metadata, got.ready_time] + [
        (one.session_id, one.reward, one.outcome, one.failure, one.stats, one.drift, one.evaluation)
        + tuple(
            (*(part.tolist() for part in columns(trace)), list(trace.spans), experts(trace), trace.reward)
            for trace in one.traces
        )
        for one in got.trajectories
    ]


def columns(trace):
    return trace.prompt_ids, trace.response_ids, trace.loss_mask, trace.logprobs


def experts(trace):
    told = trace.routed_experts
    return told and (told.rows.dtype, told.rows.tolist(), told.known.tolist())


def response(seed: int) -> StreamTrajectoriesResponse:
    chance = random.Random(seed)
    made = []
    for number in range(chance.randrange(4)):
        one = batch(number + 1, tokens=chance.choice([0, 2, 8, 200, 40_000]), samples=chance.randrange(4))
        one.metadata["step"] = number
        for trajectory in one.trajectories:
            trajectory.stats.masked_tokens["side"] = 4
            trajectory.evaluation["passed"] = True
            for trace in trajectory.traces:
                if chance.random() < 0.5:
                    trace.reward = chance.random()
                spans = chance.randrange(3)
                trace.spans.extend(CallSpan(call_id=f"c-{i}", start=i, length=200) for i in range(spans))
                if chance.random() < 0.5:
                    trace.routed_experts.CopyFrom(made_experts(trace, chance))
            if chance.random() < 0.3:
                trajectory.ClearField("reward")
        made.append(one)
    return StreamTrajectoriesResponse(
        batch=made[0] if made else None, more=made[1:], policy_version=chance.randrange(3), seeks=chance.randrange(300)
    )


def made_experts(trace: Trace, chance: random.Random) -> TraceExperts:
    ids = (len(trace.prompt_ids) + len(trace.response_ids)) // 4
    layers, top_k, item_bytes = chance.randrange(1, 4), 2, chance.choice([1, 2])
    return TraceExperts(
        rows=chance.randbytes(ids * layers * top_k * item_bytes),
        known=bytes(chance.randrange(2) for _ in range(ids)),
        layers=layers,
        top_k=top_k,
        item_bytes=item_bytes,
    )


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_protobuf_reads(seed):
    want = response(seed)
    got = StreamMessage(want.SerializeToString())
    assert (got.policy_version, got.seeks) == (want.policy_version, want.seeks)
    assert got.HasField("batch") == want.HasField("batch")
    if want.HasField("batch"):
        assert told(got.batch) == told(want.batch)
    assert [told(one) for one in got.more] == [told(one) for one in want.more]


@pytest.mark.parametrize("seed", range(20))
def test_in_columns_it_is_the_same(seed):
    want, packed = response(seed), response(seed)
    for one in [packed.batch, *packed.more] if packed.HasField("batch") else []:
        in_columns(one)
    got = StreamMessage(packed.SerializeToString())
    if want.HasField("batch"):
        assert told(got.batch) == told(want.batch)
    assert [told(one) for one in got.more] == [told(one) for one in want.more]


@pytest.mark.parametrize("field", [one.name for one in BatchColumns.DESCRIPTOR.fields if one.name != "dropped_reasons"])
def test_columns_that_do_not_fit_are_refused(field):
    message = StreamTrajectoriesResponse(batch=in_columns(batch(1, tokens=6)))
    value = getattr(message.batch.columns, field)
    assert value
    for damaged in (value[1:], b"", value[:-8] if field.endswith("offsets") else value + bytes(8)):
        setattr(message.batch.columns, field, damaged)
        with pytest.raises(DataLoss, match="do not fit"):
            read_batch(StreamMessage(message.SerializeToString()).batch, Nobody())
    setattr(message.batch.columns, field, value)
    read_batch(StreamMessage(message.SerializeToString()).batch, Nobody())


@pytest.mark.parametrize("tokens", [6, 40_000])
def test_columns_are_aligned_and_hold_no_other_bytes(tokens):
    data = StreamTrajectoriesResponse(batch=batch(1, tokens=tokens)).SerializeToString()
    for trajectory in read_batch(StreamMessage(data).batch, Nobody()).trajectories:
        for column in columns(trajectory.traces[0]):
            assert column.flags.aligned
            assert not column.flags.writeable
            assert len(column.base) == column.nbytes


def test_a_trace_in_another_order_is_read_too():
    (trace,) = batch(1, tokens=6, samples=1).trajectories[0].traces
    spans = Trace(spans=[CallSpan(call_id="c", length=3)])
    for first, second in ((spans, trace), (trace, spans)):
        data = first.SerializeToString() + second.SerializeToString()
        got = read_trace(data, 0, len(data))
        assert (got.response_ids, got.logprobs) == (trace.response_ids, trace.logprobs)
        assert [one.call_id for one in got.spans] == ["c"]


@pytest.mark.parametrize("tokens", [40, 40_000])
def test_experts_hold_no_other_bytes(tokens):
    message = batch(1, tokens=tokens, samples=1)
    trace = message.trajectories[0].traces[0]
    trace.routed_experts.CopyFrom(made_experts(trace, random.Random(1)))
    data = StreamTrajectoriesResponse(batch=message).SerializeToString()
    (read,) = read_batch(StreamMessage(data).batch, Nobody()).trajectories[0].traces
    for column in (read.routed_experts.rows, read.routed_experts.known):
        assert column.flags.aligned
        assert not column.flags.writeable
        while isinstance(column.base, np.ndarray):
            column = column.base
        assert len(column.base) == column.nbytes


def test_bytes_that_are_no_message_are_refused():
    data = StreamTrajectoriesResponse(batch=batch(1), policy_version=300).SerializeToString()
    for end in range(1, len(data)):
        try:
            whole = StreamTrajectoriesResponse.FromString(data[:end])
        except DecodeError:
            with pytest.raises(DecodeError):
                told(StreamMessage(data[:end]).batch)
        else:
            assert StreamMessage(data[:end]).policy_version == whole.policy_version
    with pytest.raises(DecodeError):
        StreamMessage(b"\xff" * 11)
    with pytest.raises(DecodeError):
        StreamMessage(b"\x0f")
