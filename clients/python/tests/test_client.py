"""Tasks: submit, get, wait, cancel; typed errors; retries and deadlines."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest
from support import Link, Server, abort, free_port

import polar_mesh
from polar_mesh import Client, errors
from polar_mesh.gen.polar.common.v1.session_pb2 import (
    SESSION_STATE_ENDED,
    SESSION_STATE_QUEUED,
    SESSION_STATE_RUNNING,
    Session,
)
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2 as pb
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2_grpc as pb_grpc


class Rollout(pb_grpc.RolloutServiceServicer):
    """One task `t` with three sessions, whose states the test sets; submits are kept by request id."""

    def __init__(self) -> None:
        self.failures: list[grpc.StatusCode] = []
        self.submits: dict[str, pb.SubmitTaskRequest] = {}
        self.calls = 0
        self.watches = 0
        #: Watches that end before the task.
        self.early_ends = 0
        self.states = {"t-0": SESSION_STATE_QUEUED, "t-1": SESSION_STATE_QUEUED, "t-2": SESSION_STATE_QUEUED}
        self.hold_s = 0.0
        self.retried: list[tuple[str, int]] = []
        self.buried: list[str] = []
        self.cursors: list[str] = []
        self._changed = threading.Condition()

    def register(self, server: grpc.Server) -> None:
        pb_grpc.add_RolloutServiceServicer_to_server(self, server)

    def set(self, session_id: str, state: int) -> None:
        with self._changed:
            self.states[session_id] = state
            self._changed.notify_all()

    def SubmitTask(self, request, context):
        self.calls += 1
        if self.hold_s:
            time.sleep(self.hold_s)
        if self.failures:
            context.abort(self.failures.pop(0), "broken")
        if request.spec.instruction == "":
            violations = BadRequest()
            violations.field_violations.add(field="instruction", description="must not be empty")
            violations.field_violations.add(field="harness.name", description="must be one of pi, shell")
            abort(context, grpc.StatusCode.INVALID_ARGUMENT, "the task is not valid", "INVALID_TASK", violations)
        self.submits[request.request_id or request.spec.task_id] = request
        return pb.SubmitTaskResponse(task=pb.Task(spec=request.spec), session_ids=sorted(self.states))

    def SubmitTasks(self, request, context):
        answers = [self.SubmitTask(task, context) for task in request.tasks]
        return pb.SubmitTasksResponse(tasks=answers)

    def GetTask(self, request, context):
        if request.task_id != "t":
            abort(context, grpc.StatusCode.NOT_FOUND, f"no task {request.task_id}", "NOT_FOUND")
        task = pb.Task()
        task.spec.task_id = request.task_id
        if self._ended():
            task.end_time.GetCurrentTime()
        return pb.GetTaskResponse(task=task)

    def ListSessions(self, request, context):
        names = sorted(self.states)
        index = int(request.page_token or 0)
        token = str(index + 1) if index + 1 < len(names) else ""
        return pb.ListSessionsResponse(sessions=[Session(session_id=names[index])], next_page_token=token)

    def GetSession(self, request, context):
        session = Session(session_id=request.session_id)
        waiting = pb.Waiting(reason=pb.WAIT_REASON_QUEUE_CAP, message="full")
        return pb.GetSessionResponse(session=session, waiting=waiting)

    def CancelSession(self, request, context):
        self.set(request.session_id, SESSION_STATE_ENDED)
        session = Session(session_id=request.session_id, state=self.states[request.session_id])
        return pb.CancelSessionResponse(session=session)

    def RetrySessions(self, request, context):
        self.retried.append((request.task_id, request.only))
        return pb.RetrySessionsResponse(session_ids=["t-1"])

    def ListQueues(self, request, context):
        return pb.ListQueuesResponse(queues=[pb.Queue(name="default", weight=1)])

    def DrainNode(self, request, context):
        return pb.DrainNodeResponse(node=pb.Node(node_id=request.node_id, draining=not request.undo))

    def CancelTask(self, request, context):
        if request.ahead:
            self.buried.append(request.task_id)
            return pb.CancelTaskResponse()
        for name in self.states:
            self.set(name, SESSION_STATE_ENDED)
        return pb.CancelTaskResponse(task=self.GetTask(request, context).task)

    def WatchTask(self, request, context):
        self.watches += 1
        self.cursors.append(request.resume_cursor)
        told: dict[str, int] = {}
        context.add_callback(lambda: self.set("t-0", self.states["t-0"]))
        while context.is_active():
            with self._changed:
                news = {name: state for name, state in self.states.items() if told.get(name) != state}
                if not news and not self._ended():
                    self._changed.wait(0.2)
            for name, state in news.items():
                told[name] = state
                session = Session(session_id=name, state=state)
                yield pb.WatchTaskResponse(session=session, cursor=f"{len(told)}")
            if not news and self._ended():
                return
            if self.early_ends > 0:
                self.early_ends -= 1
                return
            yield pb.WatchTaskResponse(cursor=f"{len(told)}")

    def _ended(self) -> bool:
        return all(state == SESSION_STATE_ENDED for state in self.states.values())


@pytest.fixture
def mesh(stack):
    service = Rollout()
    server = Server(service.register)
    stack.callback(server.stop)
    client = Client(server.url)
    stack.callback(client.close)
    return service, server, client


def test_submit_takes_a_mapping_and_a_message(mesh):
    service, _, client = mesh
    task = {
        "task_id": "t",
        "instruction": "add",
        "num_samples": 3,
        "budgets": {"run": 90, "prepare": timedelta(milliseconds=1500)},
        "runtime": {
            "prepare": [{"upload_file": {"target": "/a", "content": "é"}}, {"exec": {"command": "ls"}}],
            "eval_prepare": {},
            "env": {"A": "b"},
        },
        "harness": {
            "name": "shell",
            "command": {"command": "true"},
            "settings": {"n": [1, None]},
            "artifacts": ["/a", "b"],
            "model_pools": ("pool/judge",),
            "mcp_servers": [{"name": "m", "command": "m", "args": []}, {"name": "n", "args": ["-v"]}],
        },
        "sampling": {"temperature": 0.0},
        "metadata": {},
    }
    answer = client.submit(task, request_id="r-1")
    assert list(answer.session_ids) == ["t-0", "t-1", "t-2"]
    spec = service.submits["r-1"].spec
    assert spec.budgets.run.ToTimedelta() == timedelta(seconds=90)
    assert spec.budgets.prepare.ToMilliseconds() == 1500
    assert spec.runtime.prepare[0].upload_file.content == "é".encode()
    assert spec.runtime.prepare[1].exec.command == "ls"
    assert spec.runtime.HasField("eval_prepare")
    assert spec.harness.settings["n"][0] == 1
    assert (list(spec.harness.artifacts), list(spec.harness.model_pools)) == (["/a", "b"], ["pool/judge"])
    assert [list(one.args) for one in spec.harness.mcp_servers] == [[], ["-v"]]
    assert spec.sampling.HasField("temperature")
    assert not spec.sampling.HasField("top_p")
    client.submit(spec)
    assert service.submits["t"].spec == spec


def test_submit_many_is_one_call_in_order(mesh):
    service, _, client = mesh
    tasks = [{"task_id": "a", "instruction": "add"}, {"task_id": "b", "instruction": "add"}]
    answers = client.submit_many(tasks)
    assert [answer.task.spec.task_id for answer in answers] == ["a", "b"]
    client.submit_many(tasks, request_ids=["r-1", "r-2"])
    assert service.submits["r-2"].spec.task_id == "b"
    with pytest.raises(ValueError):
        client.submit_many(tasks, request_ids=["r-1"])
    with pytest.raises(errors.InvalidArgument) as caught:
        client.submit_many([tasks[0], {"task_id": "c", "num_sample": 1}, "d"])
    assert [fault.field for fault in caught.value.fields] == ["tasks[1].spec.num_sample", "tasks[2].spec"]
    assert set(service.submits) == {"a", "b", "r-1", "r-2"}


def test_a_mapping_with_faults_names_them_all_before_any_call(mesh):
    service, _, client = mesh
    task = {"task_id": 5, "num_sample": 1, "budgets": {"run": "x"}, "runtime": {"prepare": [{"exec": []}]}}
    with pytest.raises(errors.InvalidArgument) as caught:
        client.submit(task)
    assert [fault.field for fault in caught.value.fields] == [
        "task_id",
        "num_sample",
        "budgets.run",
        "runtime.prepare[0].exec",
    ]
    assert "num_samples" in caught.value.fields[1].description
    assert caught.value.reason == "INVALID_TASK"
    assert service.calls == 0


def test_faults_of_the_server_come_with_reason_boundary_and_fields(mesh):
    service, _, client = mesh
    with pytest.raises(errors.InvalidArgument) as caught:
        client.submit({"task_id": "t"})
    error = caught.value
    assert isinstance(error, polar_mesh.PolarError)
    assert (error.code, error.reason, error.boundary) == ("INVALID_ARGUMENT", "INVALID_TASK", "mesh")
    assert [fault.field for fault in error.fields] == ["instruction", "harness.name"]
    assert "must be one of pi, shell" in str(error)
    assert not error.retryable
    assert service.calls == 1


def test_a_fault_that_the_message_tells_is_not_told_twice():
    told, more = errors.FieldFault("a", "must be b"), errors.FieldFault("c", "must be d")
    error = errors.InvalidArgument("2 faults:\n  a: must be b", code="INVALID_ARGUMENT", fields=(told, more))
    assert str(error) == "INVALID_ARGUMENT: 2 faults:\n  a: must be b\n  c: must be d"


def test_unknown_tasks_are_not_found(mesh):
    _, _, client = mesh
    with pytest.raises(errors.NotFound) as caught:
        client.get_task("other")
    assert caught.value.reason == "NOT_FOUND"


def test_a_broken_call_is_made_again(mesh):
    service, _, client = mesh
    service.failures = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL]
    client.submit({"task_id": "t", "instruction": "add"})
    assert service.calls == 4


def test_a_refused_call_is_not_made_again(mesh):
    service, _, client = mesh
    service.failures = [grpc.StatusCode.UNIMPLEMENTED]
    with pytest.raises(errors.Internal):
        client.submit({"task_id": "t", "instruction": "add"})
    assert service.calls == 1


def test_a_deadline_holds_for_all_tries_together(mesh):
    service, _, client = mesh
    service.hold_s = 1.0
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        client.submit({"task_id": "t", "instruction": "add"}, timeout_s=0.3)
    assert time.monotonic() - began < 0.9


@pytest.mark.parametrize("time_s", [float("inf"), 1e300])
def test_a_call_may_have_all_the_time_that_there_is(mesh, time_s):
    assert mesh[2].get_task("t", timeout_s=time_s).spec.task_id == "t"


def test_nothing_there_is_unavailable_in_time():
    with Client(f"http://127.0.0.1:{free_port()}", timeout_s=0.5) as client:
        began = time.monotonic()
        with pytest.raises(errors.Unavailable) as caught:
            client.get_task("t")
        assert 0.3 < time.monotonic() - began < 3
        assert caught.value.retryable


def test_a_server_that_comes_late_is_found(mesh):
    _, server, client = mesh
    server.stop()
    threading.Timer(0.5, server.start).start()
    assert client.get_task("t").spec.task_id == "t"


def test_sessions_of_all_pages_are_listed(mesh):
    _, _, client = mesh
    assert [one.session_id for one in client.list_sessions("t")] == ["t-0", "t-1", "t-2"]


def test_wait_ends_with_the_task_and_watch_tells_each_change_once(mesh, stack):
    service, server, _ = mesh
    link = Link(server.port)
    stack.callback(link.close)
    client = Client(link.url)
    stack.callback(client.close)
    seen = []
    for change in client.watch("t"):
        seen.append((change.session.session_id, change.session.state))
        if len(seen) == 3:
            link.cut()
            service.set("t-1", SESSION_STATE_RUNNING)
        if len(seen) == 4:
            link.cut()
            for name in service.states:
                service.set(name, SESSION_STATE_ENDED)
    assert seen[:3] == [(name, SESSION_STATE_QUEUED) for name in ("t-0", "t-1", "t-2")]
    assert seen[3] == ("t-1", SESSION_STATE_RUNNING)
    assert sorted(seen[4:]) == [(name, SESSION_STATE_ENDED) for name in ("t-0", "t-1", "t-2")]
    assert service.watches == 3
    assert service.cursors[0] == ""
    assert all(service.cursors[1:])
    assert client.wait("t").HasField("end_time")


def test_wait_has_a_deadline(mesh):
    service, _, client = mesh
    for service.early_ends in (0, 1_000_000):
        with pytest.raises(errors.DeadlineExceeded, match="task t has not ended"):
            client.wait("t", timeout_s=0.4)
    assert service.watches < 50


def test_cancel_ends_the_task(mesh):
    _, _, client = mesh
    assert client.cancel("t").HasField("end_time")
    assert client.wait("t", timeout_s=5).HasField("end_time")


def test_a_closed_client_says_so(mesh):
    _, _, client = mesh
    client.close()
    for call in (lambda: client.get_task("t"), lambda: next(client.watch("t")), lambda: client.stream("c")):
        with pytest.raises(errors.Cancelled):
            call()


def test_a_closed_policy_client_says_so():
    policy = polar_mesh.PolicyClient()
    policy.close()
    with pytest.raises(errors.Cancelled, match="closed"):
        policy.get_policy()


def test_another_service_at_the_address_is_told(mesh):
    """Who mixes up the two addresses."""
    _, server, _ = mesh
    with Client(trajectory_url=server.url) as client, pytest.raises(errors.Internal, match="is the address right"):
        client.list_consumers()


def test_a_proxy_for_the_web_is_not_asked(mesh, monkeypatch):
    _, server, _ = mesh
    for name in ("http_proxy", "grpc_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Client(server.url, timeout_s=5) as client:
        assert [queue.name for queue in client.list_queues()] == ["default"]


def test_a_filter_of_another_type_is_refused():
    with Client() as client, pytest.raises(TypeError, match="polar_mesh.Filter, not dict"):
        client.stream("trainer", filter={"staleness_max": 1})


NO_ADDRESSES = ["127.0.0.1:80", "ftp://a", "http://", "http://a/b", "http://u:p@a", "http://a:x", "http://:1", "http://a?b"]


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError, match="http"):
        Client(url)
    with pytest.raises(ValueError, match="no address"):
        Client([])


def test_sessions_queues_and_nodes(mesh):
    service, _, client = mesh
    found = client.get_session("t-0")
    assert (found.session.session_id, found.waiting.reason) == ("t-0", pb.WAIT_REASON_QUEUE_CAP)
    assert client.cancel_session("t-0").state == SESSION_STATE_ENDED
    assert client.retry("t") == ["t-1"]
    assert client.retry("t", only="missing") == ["t-1"]
    assert service.retried == [("t", pb.RETRY_ONLY_INFRASTRUCTURE), ("t", pb.RETRY_ONLY_MISSING)]
    with pytest.raises(ValueError, match="'some' is none of infrastructure, failed, missing"):
        client.retry("t", only="some")
    with pytest.raises(ValueError, match="'begin' is none of oldest, newest"):
        client.seek("trainer", "begin")
    with pytest.raises(ValueError, match="'all' is none of calls, traces"):
        client.export_session("t-0", "all")
    assert [queue.name for queue in client.list_queues()] == ["default"]
    assert client.drain("n").draining
    assert not client.drain("n", undo=True).draining
    client.cancel("later", ahead=True)
    assert service.buried == ["later"]
