"""Grading again, by both clients: what is asked for, and what comes of it."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from support import Server, abort

from polar_mesh import EvaluatorClient, aio, errors
from polar_mesh.gen.polar.evaluator.v1 import evaluator_service_pb2 as pb
from polar_mesh.gen.polar.evaluator.v1.evaluator_service_pb2_grpc import (
    EvaluatorServiceServicer,
    add_EvaluatorServiceServicer_to_server,
)


class Evaluations(EvaluatorServiceServicer):
    """Rewards every session with 1, but those that have a reason in their id."""

    def __init__(self):
        self.asked = []

    def register(self, server):
        add_EvaluatorServiceServicer_to_server(self, server)

    def EvaluateSession(self, request, context):
        self.asked.append(request)
        if request.session_id.isupper():
            abort(context, grpc.StatusCode.UNAVAILABLE, "not now", request.session_id)
        return pb.EvaluateSessionResponse(session_id=request.session_id, old_reward=0, reward=1)


def sync(url, *args, **options):
    with EvaluatorClient(url) as client:
        return client.evaluate_session(*args, **options)


def other(url, *args, **options):
    async def run():
        async with aio.EvaluatorClient(url) as client:
            return await client.evaluate_session(*args, **options)

    return asyncio.run(run())


@pytest.mark.parametrize("evaluate", [sync, other])
def test_a_session_is_graded_by_its_own_evaluator_or_by_another(evaluate, stack):
    service = Evaluations()
    server = Server(service.register)
    stack.callback(server.stop)
    assert evaluate(server.url, "s-1").reward == 1
    evaluate(server.url, "s-2", {"strategy": "rubric", "config": {"judge": "fair"}, "env": {"A": "b"}})
    own, given = service.asked
    assert not own.HasField("evaluator")
    assert (given.evaluator.strategy, dict(given.evaluator.env)) == ("rubric", {"A": "b"})
    assert dict(given.evaluator.config) == {"judge": "fair"}


@pytest.mark.parametrize("evaluate", [sync, other])
def test_what_fails_is_not_tried_again_and_what_no_evaluator_is_not_asked(evaluate, stack):
    service = Evaluations()
    server = Server(service.register)
    stack.callback(server.stop)
    with pytest.raises(errors.Unavailable) as caught:
        evaluate(server.url, "JUDGE_UNAVAILABLE")
    assert caught.value.reason == "JUDGE_UNAVAILABLE"
    with pytest.raises(errors.InvalidArgument) as caught:
        evaluate(server.url, "s-1", {"strateg": "rubric"})
    assert [fault.field for fault in caught.value.fields] == ["evaluator.strateg"]
    assert len(service.asked) == 1
