"""Where a part of an export ends: with the group that reaches what a part may hold."""

from __future__ import annotations

import json

import pytest
from export_mesh import Mesh
from support import Server

from polar_mesh import Client
from polar_mesh.export import export, run

TASKS = [f"t{i}" for i in range(6)]


@pytest.fixture
def client(stack):
    server = Server(Mesh(len(TASKS)).register)
    stack.callback(server.stop)
    client = Client(server.url, server.url, timeout_s=10)
    stack.callback(client.close)
    return client


def rows(folder):
    return [json.loads(line) for line in (folder / "part-00000.jsonl").read_text().splitlines()]


def test_a_part_of_conversations_is_bounded_by_its_text(client, tmp_path, monkeypatch):
    assert export(client, tmp_path / "one", what="sft", tasks=TASKS).parts == 1
    one = rows(tmp_path / "one")
    text = sum(len(message["content"] or "") for row in one for message in row["messages"])
    assert run._chars(one) > text
    monkeypatch.setattr(run, "PART_CHARS", run._chars(one) // 3)
    assert export(client, tmp_path / "all", what="sft", tasks=TASKS).parts == 3


def test_a_part_of_traces_is_bounded_by_its_ids_and_by_nothing_beside_them(client, tmp_path, monkeypatch):
    export(client, tmp_path / "one", tasks=TASKS)
    ids = sum(len(row[name]) for row in rows(tmp_path / "one") for name in ("prompt_ids", "response_ids"))
    monkeypatch.setattr(run, "PART_IDS", ids)
    assert export(client, tmp_path / "whole", tasks=TASKS).parts == 1
    monkeypatch.setattr(run, "PART_IDS", 1)
    assert export(client, tmp_path / "all", tasks=TASKS).parts == len(TASKS)
