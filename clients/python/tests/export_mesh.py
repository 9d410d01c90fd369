"""A mesh whose tasks have ended, as an export asks it: six tasks of one group each, made up from their numbers."""

from __future__ import annotations

import json

import grpc
import numpy as np
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2
from support import Trajectories, abort

from polar_mesh.gen.polar.common.v1 import session_pb2
from polar_mesh.gen.polar.reconstructor.v1 import reconstructor_service_pb2 as pb
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import (
    CallSpan,
    Drift,
    Trace,
    TraceExperts,
    Trajectory,
    TrajectoryBatch,
)
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2 as rollout
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2_grpc as rollout_grpc

SAMPLES = 4
ATTEMPT = 2


def made_trace(seed: int) -> Trace:
    numbers = np.random.default_rng(seed)
    length = int(numbers.integers(1, 30))
    mask = numbers.integers(0, 2, length).astype(np.uint8)
    logprobs = np.where(mask == 1, -numbers.random(length), 0).astype("<f4")
    return Trace(
        prompt_ids=numbers.integers(0, 2**31 - 1, 5).astype("<i4").tobytes(),
        response_ids=numbers.integers(0, 2**31 - 1, length).astype("<i4").tobytes(),
        loss_mask=mask.tobytes(),
        logprobs=logprobs.tobytes(),
        spans=[CallSpan(call_id=f"c{seed}", length=length, masked_reason="no_logprob")],
        routed_experts=made_experts(numbers, 5 + length) if seed % 2 else None,
    )


def made_experts(numbers: np.random.Generator, ids: int) -> TraceExperts:
    """Of a model with 3 layers, 2 experts for an id, and more than 256 of them; nobody has read the last id."""
    rows = numbers.integers(0, 300, (ids, 3, 2)).astype("<u2")
    known = np.ones(ids, np.uint8)
    rows[-1] = known[-1] = 0
    return TraceExperts(rows=rows.tobytes(), known=known.tobytes(), layers=3, top_k=2, item_bytes=2)


def made_trajectory(task: int, sample: int) -> Trajectory:
    """Rewards of a group are 0, 0.25, 0.5, 0.75; sample 1 drifts, sample 2 passed its tests, sample 3 timed out."""
    evaluation = struct_pb2.Struct()
    evaluation.update({"resolved": sample == 2})
    outcome = session_pb2.OUTCOME_TIMEOUT if sample == 3 else session_pb2.OUTCOME_COMPLETED
    return Trajectory(
        session_id=f"s{task}-{sample}",
        task_id=f"t{task}",
        group_id="g0",
        sample_index=sample,
        attempt=ATTEMPT,
        outcome=outcome,
        reward=sample / 4,
        traces=[made_trace(1000 * task + 10 * sample + i) for i in range(2)],
        builder="prefix_merging",
        policy_version_min=1,
        policy_version_max=2,
        drift=[Drift(call_id="c")] if sample == 1 else [],
        evaluation=evaluation,
    )


def made_messages(session_id: str) -> list[dict]:
    """Two turns with a tool, then a side call; only the first reply depends on the session."""
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    asked = [{"role": "system", "content": "Help."}, {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}]}]
    used = {"role": "assistant", "content": None, "reasoning": f"thinks {session_id}", "tool_calls": [call]}
    sent_back = {key: value for key, value in used.items() if key != "reasoning"}
    result = {"role": "tool", "tool_call_id": "t1", "content": "3"}
    answer = {"role": "assistant", "content": "ü 3"}
    tools = [{"type": "function", "function": {"name": "add"}}]
    side = {"role": "side", "messages": [{"role": "user", "content": "A title?"}], "reply": answer, "tools": None}
    lines = [
        {"messages": asked, "reply": used, "tools": tools, "role": "main"},
        {"messages": [*asked, sent_back, result], "reply": answer, "tools": tools, "role": "main"},
        side,
    ]
    common = {"finish_reason": "stop", "trainable": True, "policy_version": 1}
    return [{**common, "call_id": f"{session_id}-c{i}", "end_seq": i, **line} for i, line in enumerate(lines)]


class Mesh(Trajectories, rollout_grpc.RolloutServiceServicer):
    """Tasks t0, t1, … with one group each."""

    def __init__(self, tasks: int) -> None:
        stored = [TrajectoryBatch(batch_id=i + 1, task_id=f"t{i}", group_id="g0", trajectories=self.group(i)) for i in range(tasks)]
        super().__init__(stored)
        self.tasks = tasks
        self.running: set[str] = set()
        self.lost: set[str] = set()
        self.removed: set[str] = set()
        self.lost_messages: set[str] = set()
        self.unreachable_messages: set[str] = set()
        self.reads: list[str] = []
        self.break_at: str | None = None

    @staticmethod
    def group(task: int) -> list[Trajectory]:
        return [made_trajectory(task, sample) for sample in range(SAMPLES)]

    def register(self, server: grpc.Server) -> None:
        super().register(server)
        rollout_grpc.add_RolloutServiceServicer_to_server(self, server)

    def ListTasks(self, request, context):
        tasks = [rollout.Task(task_id=f"t{i}") for i in reversed(range(self.tasks))]
        for i, task in enumerate(reversed(tasks)):
            task.create_time.FromSeconds(i)
            task.spec.queue = "odd" if i % 2 else ""
        return rollout.ListTasksResponse(tasks=tasks)

    def ListSessions(self, request, context):
        ended, running = session_pb2.SESSION_STATE_ENDED, session_pb2.SESSION_STATE_RUNNING
        state = running if request.task_id in self.running else ended
        number = int(request.task_id[1:])
        sessions = [
            session_pb2.Session(session_id=f"s{number}-{i}", group_id="g0", sample_index=i, state=state)
            for i in range(SAMPLES)
        ]
        return rollout.ListSessionsResponse(sessions=sessions)

    def GetTrajectory(self, request, context):
        session_id = request.session_id
        self.reads.append(session_id)
        if session_id == self.break_at:
            abort(context, grpc.StatusCode.NOT_FOUND, "gone for the moment", "NOT_FOUND")
        if session_id in self.lost:
            abort(context, grpc.StatusCode.DATA_LOSS, "no blob", "BLOB_MISSING")
        task, sample = session_id[1:].split("-")
        if f"t{task}" in self.removed:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, "the group is gone", "NOT_ENDED")
        return pb.GetTrajectoryResponse(trajectory=made_trajectory(int(task), int(sample)))

    def ExportSession(self, request, context):
        assert request.kind == pb.EXPORT_KIND_MESSAGES
        session_id = request.session_id
        if session_id in self.lost_messages:
            abort(context, grpc.StatusCode.DATA_LOSS, "no blob", "BLOB_MISSING")
        if session_id in self.unreachable_messages:
            again = error_details_pb2.RetryInfo()
            again.retry_delay.FromMilliseconds(50)
            abort(context, grpc.StatusCode.DATA_LOSS, "not there yet", "RECORDS_MISSING", again)
        # Another attempt than the trajectory's said something else.
        for line in made_messages(session_id if request.attempt == ATTEMPT else f"{session_id} now"):
            yield pb.ExportSessionResponse(line=json.dumps(line))
