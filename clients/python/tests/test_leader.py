"""Several schedulers of which one leads: the client finds it, and the next one."""

from __future__ import annotations

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from support import Server, abort

from polar_mesh import Client, errors
from polar_mesh.gen.polar.common.v1.session_pb2 import SESSION_STATE_ENDED, Session
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2 as pb
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2_grpc as pb_grpc


class Scheduler(pb_grpc.RolloutServiceServicer):
    """Leads or follows, as the test says."""

    def __init__(self, leads: bool) -> None:
        self.leads = leads
        self.refused = 0

    def _check(self, context):
        if self.leads:
            return
        self.refused += 1
        again = RetryInfo()
        again.retry_delay.FromMilliseconds(20)
        abort(context, grpc.StatusCode.UNAVAILABLE, "follows", "NOT_LEADER", again)

    def GetTask(self, request, context):
        self._check(context)
        task = pb.Task(task_id=request.task_id)
        task.end_time.GetCurrentTime()
        return pb.GetTaskResponse(task=task)

    def WatchTask(self, request, context):
        self._check(context)
        session = Session(session_id="t-0", state=SESSION_STATE_ENDED)
        yield pb.WatchTaskResponse(session=session, cursor="1")


@pytest.fixture
def pair(stack):
    services = [Scheduler(leads=False), Scheduler(leads=True)]
    servers = []
    for service in services:
        server = Server(lambda made, service=service: pb_grpc.add_RolloutServiceServicer_to_server(service, made))
        stack.callback(server.stop)
        servers.append(server)
    client = Client([server.url for server in servers], timeout_s=10)
    stack.callback(client.close)
    return services, servers, client


def test_goes_to_the_one_that_leads_and_stays_there(pair):
    (follower, _), _, client = pair
    for _ in range(3):
        assert client.get_task("t").task_id == "t"
    assert follower.refused == 1


def test_watches_at_the_one_that_leads(pair):
    _, _, client = pair
    assert [change.session.session_id for change in client.watch("t", timeout_s=10)] == ["t-0"]


def test_goes_on_when_the_other_one_takes_over(pair):
    (first, second), servers, client = pair
    client.get_task("t")
    servers[1].stop()
    first.leads = True
    assert client.get_task("t").task_id == "t"
    assert [change.session.session_id for change in client.watch("t", timeout_s=10)] == ["t-0"]
    assert second.refused == 0


def test_says_so_when_none_leads(pair):
    (_, leader), _, client = pair
    leader.leads = False
    with pytest.raises(errors.Unavailable) as raised:
        client.get_task("t", timeout_s=1)
    assert raised.value.reason == "NOT_LEADER"
