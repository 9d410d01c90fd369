"""Exports against a real server: files load in pandas, datasets and DuckDB; what is missing is all that is written."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

import export_mesh
import numpy as np
import pytest
from export_mesh import SAMPLES, Mesh, made_messages, made_trace
from support import Server

from polar_mesh import Client, errors
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import Trace
from polar_mesh.export import COLUMNS, ExportError, Rule, cli, export, run

# Read when `datasets` is imported: it is to ask nobody.
os.environ["HF_HUB_OFFLINE"] = "1"

SOURCE = pathlib.Path(__file__).parents[1] / "src"
FORMAT = pathlib.Path(__file__).parents[3] / "docs" / "export-format.md"


@pytest.fixture
def mesh(stack):
    service = Mesh(tasks=6)
    server = Server(service.register)
    stack.callback(server.stop)
    client = Client(server.url, server.url, timeout_s=10)
    stack.callback(client.close)
    service.url = server.url
    return service, client


TASKS = [f"t{i}" for i in range(6)]


def parts(folder: pathlib.Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(folder.iterdir()) if one.name.startswith("part-")}


def check_traces(rows: Sequence[dict]) -> None:
    wanted = [
        (f"s{task}-{sample}", number, made_trace(1000 * task + 10 * sample + number))
        for task in range(6)
        for sample in range(SAMPLES)
        for number in range(2)
    ]
    assert len(rows) == len(wanted)
    for row, (session_id, number, trace) in zip(rows, wanted, strict=True):
        assert (row["session_id"], row["trace"], row["builder"]) == (session_id, number, "prefix_merging")
        for name, kind in (("prompt_ids", "<i4"), ("response_ids", "<i4"), ("loss_mask", "u1"), ("logprobs", "<f4")):
            np.testing.assert_array_equal(np.asarray(row[name], kind), np.frombuffer(getattr(trace, name), kind))
        assert row["reward"] == int(session_id[-1]) / 4
        assert list(row["masked_reasons"]) == ["no_logprob"]
        check_experts(row["routed_experts"], trace)


def check_experts(told: dict | None, trace: Trace) -> None:
    if not trace.HasField("routed_experts"):
        assert told is None or pandas_null(told)
        return
    wanted = trace.routed_experts
    assert told is not None
    assert (told["layers"], told["top_k"], told["item_bytes"]) == (3, 2, 2)
    rows = base64.b64decode(told["rows"]) if isinstance(told["rows"], str) else bytes(told["rows"])
    assert rows == wanted.rows
    np.testing.assert_array_equal(np.asarray(told["known"], np.uint8), np.frombuffer(wanted.known, np.uint8))


def pandas_null(value: object) -> bool:
    """How pandas reads null where other rows have an object."""
    return isinstance(value, float) and np.isnan(value)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_traces_load_in_pandas_datasets_and_duckdb(mesh, tmp_path, monkeypatch, format):
    datasets = pytest.importorskip("datasets")
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(run, "PART_ROWS", 16)
    _, client = mesh
    out = tmp_path / "out"
    result = export(client, out, format=format, tasks=TASKS)
    assert (result.parts, result.rows, result.groups, result.dropped) == (3, 48, 6, {})

    read = pandas.read_parquet if format == "parquet" else lambda path: pandas.read_json(path, lines=True)
    frame = pandas.concat([read(out / name) for name in parts(out)])
    check_traces(frame.to_dict("records"))

    loaded = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.features["prompt_ids"].feature.dtype == "int32"
    assert loaded.features["loss_mask"].feature.dtype == "uint8"
    assert loaded.features["logprobs"].feature.dtype == "float32"
    check_traces(loaded.to_list())

    scan = "read_parquet" if format == "parquet" else "read_json"
    table = duckdb.sql(f"select * from {scan}('{out}/part-*.{format}') order by session_id, trace")
    check_traces([dict(zip(table.columns, row, strict=True)) for row in table.fetchall()])


def test_the_schema_is_in_the_files(mesh, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    _, client = mesh
    export(client, tmp_path / "out", format="parquet", tasks=["t0"])
    schema = parquet.read_schema(tmp_path / "out" / "part-00000.parquet")
    types = {field.name: str(field.type) for field in schema}
    assert types["response_ids"] == "list<element: int32>"
    assert types["loss_mask"] == "list<element: uint8>"
    assert types["logprobs"] == "list<element: float>"
    assert types["routed_experts"].startswith("struct<")
    document = json.loads(schema.metadata[b"polar_mesh.schema"])
    assert [one["name"] for one in document["columns"]] == schema.names
    card = (tmp_path / "out" / "README.md").read_text()
    assert all(f"| `{name}` |" in card for name in schema.names)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_sft_and_preference_sets_load_in_datasets(mesh, tmp_path, format):
    datasets = pytest.importorskip("datasets")
    _, client = mesh
    rule = Rule(reward_min=0.5)
    result = export(client, tmp_path / "sft", what="sft", format=format, tasks=TASKS, rule=rule)
    assert (result.rows, result.dropped) == (12, {"reward": 12})
    loaded = datasets.load_dataset(str(tmp_path / "sft"), split="train", cache_dir=str(tmp_path / "cache")).to_list()
    assert [row["session_id"] for row in loaded[:3]] == ["s0-2", "s0-3", "s1-2"]
    talk = loaded[0]["messages"]
    assert [one["role"] for one in talk] == ["system", "user", "assistant", "tool", "assistant"]
    assert (talk[1]["content"], talk[4]["content"]) == ("1 + 2?", "ü 3")
    assert talk[2]["reasoning_content"] == "thinks s0-2"
    assert talk[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert json.loads(loaded[0]["tools"])[0]["function"]["name"] == "add"

    result = export(client, tmp_path / "pairs", what="preference", format=format, tasks=TASKS)
    assert result.rows == 6
    pair = datasets.load_dataset(str(tmp_path / "pairs"), split="train", cache_dir=str(tmp_path / "cache"))[0]
    assert [one["role"] for one in pair["prompt"]] == ["system", "user"]
    assert [one["role"] for one in pair["chosen"]] == ["assistant", "tool", "assistant"]
    assert (pair["chosen_session_id"], pair["chosen_reward"]) == ("s0-3", 0.75)
    assert (pair["rejected_session_id"], pair["rejected_reward"]) == ("s0-0", 0.0)
    assert pair["rejected"][0]["reasoning_content"] == "thinks s0-0"


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(("what", "rows"), [("sft", 24), ("preference", 6)])
def test_half_an_emoji_of_one_session_stops_no_export(mesh, tmp_path, monkeypatch, what, rows, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")

    def cut(session_id: str) -> list[dict]:
        text = json.dumps(made_messages(session_id))
        return json.loads(text.replace("\"a\"", "\"\\ud83d\"").replace("add", "\\ud83d") if session_id == "s0-3" else text)

    monkeypatch.setattr(export_mesh, "made_messages", cut)
    _, client = mesh
    assert export(client, tmp_path / "out", what=what, format=format, tasks=TASKS).rows == rows


@pytest.mark.parametrize(("what", "rows", "dropped"), [("sft", 6, {"lost": 2}), ("preference", 0, {"lost": 2})])
def test_lost_messages_leave_out_one_session_or_pair(mesh, tmp_path, what, rows, dropped):
    service, client = mesh
    service.lost_messages = {"s0-3", "s1-0"}
    result = export(client, tmp_path / "out", what=what, tasks=["t0", "t1"])
    assert (result.rows, result.dropped, result.groups) == (rows, dropped, 2)


@pytest.mark.parametrize("what", ["sft", "preference"])
def test_messages_that_may_come_end_the_export_and_lose_nothing(mesh, tmp_path, what):
    service, client = mesh
    service.unreachable_messages = {"s0-3"}
    hasty = Client(service.url, service.url, timeout_s=0.5)
    with pytest.raises((errors.DataLoss, errors.DeadlineExceeded)), hasty:
        export(hasty, tmp_path / "out", what=what, tasks=["t0"])
    service.unreachable_messages = set()
    assert export(client, tmp_path / "out", what=what, tasks=["t0"]).dropped == {}


@pytest.mark.parametrize("what", ["traces", "sft"])
def test_an_export_that_broke_goes_on_and_is_the_same_byte_for_byte(mesh, tmp_path, monkeypatch, what):
    monkeypatch.setattr(run, "GROUPS_MAX", 2)
    service, client = mesh
    export(client, tmp_path / "whole", what=what, tasks=TASKS)
    service.break_at = "s3-2"
    with pytest.raises(errors.NotFound):
        export(client, tmp_path / "broken", what=what, tasks=TASKS)
    assert list(parts(tmp_path / "broken")) == ["part-00000.jsonl"]
    service.break_at = None
    service.reads.clear()
    result = export(client, tmp_path / "broken", what=what, tasks=TASKS)
    assert result.groups_added == 4
    assert not {"s0-0", "s1-3"} & set(service.reads), "what is in a part is not read again"
    assert parts(tmp_path / "broken") == parts(tmp_path / "whole")
    assert (tmp_path / "broken" / "export.json").read_bytes() == (tmp_path / "whole" / "export.json").read_bytes()


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_second_export_writes_what_is_missing_only(mesh, tmp_path, monkeypatch, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(run, "GROUPS_MAX", 2)
    service, client = mesh
    service.running = {"t5"}
    first = export(client, tmp_path, format=format, tasks=TASKS)
    assert (first.groups, first.unfinished) == (5, 1)
    before = parts(tmp_path)
    service.running = set()
    service.reads.clear()
    second = export(client, tmp_path, format=format, tasks=TASKS)
    assert (second.groups, second.groups_added, second.unfinished) == (6, 1, 0)
    assert service.reads == [f"s5-{i}" for i in range(SAMPLES)]
    assert before.items() <= parts(tmp_path).items()
    service.reads.clear()
    third = export(client, tmp_path, format=format, tasks=TASKS)
    assert (third.rows, third.rows_added, service.reads) == (second.rows, 0, [])

    all_parts = parts(tmp_path)
    lost = sorted(all_parts)[1]
    (tmp_path / lost).unlink()
    again = export(client, tmp_path, format=format, tasks=TASKS)
    assert (again.groups_added, set(service.reads)) == (2, {f"s{t}-{i}" for t in (2, 3) for i in range(SAMPLES)})
    assert parts(tmp_path) == all_parts


def test_what_retention_has_taken_is_not_said_to_come(mesh, tmp_path, capsys):
    service, _ = mesh
    service.running, service.removed = {"t1"}, {"t2", "t3"}
    where = [f"--{name}-url={service.url}" for name in ("rollout", "trajectory")]
    assert cli.main([str(tmp_path), *where, *(f"--task={one}" for one in TASKS)]) == 0
    told = capsys.readouterr().out
    assert "24 rows of 3 groups" in told
    assert "1 groups have not ended: run the same again" in told
    assert "2 groups have ended and are not in the store: retention has taken them" in told


@pytest.mark.skipif(not FORMAT.exists(), reason="only in a checkout")
def test_the_document_tells_every_column():
    text = FORMAT.read_text()
    for what, columns in COLUMNS.items():
        _, _, part = text.partition(f"### `--what {what}`")
        rows = "\n".join(f"| `{one.name}` | {one.kind} | {one.meaning} |" for one in columns)
        assert rows in part.partition("###")[0], what


def test_the_rule_says_what_it_leaves_out(mesh, tmp_path):
    service, client = mesh
    service.lost = {"s0-0"}
    found = {}
    for name, rule in {
        "all": Rule(),
        "tests": Rule(tests_passed=True),
        "drift": Rule(no_drift=True),
        "outcome": Rule(outcome="completed"),
        "reward": Rule(reward_min=0.5, outcome="completed"),
    }.items():
        result = export(client, tmp_path / name, tasks=["t0"], rule=rule)
        found[name] = (result.rows, result.dropped)
    assert found == {
        "all": (6, {"lost": 1}),
        "tests": (2, {"lost": 1, "tests": 2}),
        "drift": (4, {"drift": 1, "lost": 1}),
        "outcome": (4, {"lost": 1, "outcome": 1}),
        "reward": (2, {"lost": 1, "outcome": 1, "reward": 1}),
    }


def test_a_queue_comes_oldest_task_first(mesh, tmp_path):
    service, client = mesh
    export(client, tmp_path, queue="odd")
    assert service.reads[::SAMPLES] == ["s1-0", "s3-0", "s5-0"]


def test_a_consumer_is_acknowledged_when_its_groups_are_in_a_part(mesh, tmp_path):
    service, client = mesh
    saw = []
    result = export(client, tmp_path, consumer="export", idle_s=1, on_progress=lambda _: saw.append(len(service.acked)))
    assert saw == [0] * 6
    assert (service.acked, result.groups) == (set(range(1, 7)), 6)
    # Written, but the acknowledgement was lost: it comes again, and is not written twice.
    service.acked.discard(3)
    again = export(client, tmp_path, consumer="export", idle_s=1)
    assert (again.groups_added, again.rows, service.acked) == (0, result.rows, set(range(1, 7)))


def test_what_a_consumer_gave_before_an_outage_is_in_a_part(mesh, tmp_path):
    service, client = mesh

    def replace(told):
        service.streams += told.groups == 4

    with pytest.raises(errors.Aborted):
        export(client, tmp_path, consumer="export", idle_s=5, on_progress=replace)
    assert service.acked == set()
    again = export(client, tmp_path, consumer="export", idle_s=0.5)
    assert (again.groups, service.acked) == (6, set(range(1, 7)))
    assert again.groups_added <= 2


def test_another_export_in_the_same_folder_is_refused(mesh, tmp_path):
    _, client = mesh
    export(client, tmp_path, tasks=["t0"])
    with pytest.raises(ExportError, match="what 'traces', not 'sft'"):
        export(client, tmp_path, what="sft", tasks=["t0"])
    with pytest.raises(ExportError, match="rule"):
        export(client, tmp_path, tasks=["t0"], rule=Rule(no_drift=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    with pytest.raises(ExportError, match="other things than an export"):
        export(client, tmp_path / "mine", tasks=["t0"])
    for text in ("{", "[]"):
        (tmp_path / "export.json").write_text(text)
        with pytest.raises(ExportError, match="is not what an export left"):
            export(client, tmp_path, tasks=["t0"])
    with pytest.raises(ValueError, match="one of tasks, queue and consumer"):
        export(client, tmp_path, tasks=["t0"], queue="odd")
    with pytest.raises(ValueError, match="a list of ids"):
        export(client, tmp_path, tasks="t0")


def test_a_rule_that_no_session_or_each_one_would_keep_is_refused():
    with pytest.raises(ValueError, match="'complete' is none of completed, timeout"):
        Rule(outcome="complete")
    with pytest.raises(ValueError, match="reward_min is no number"):
        Rule(reward_min=float("nan"))


def test_without_pyarrow_it_says_what_to_install(mesh, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    _, client = mesh
    with pytest.raises(ExportError, match=r"pip install 'polar-mesh\[export\]'"):
        export(client, tmp_path / "out", format="parquet", tasks=["t0"])
    assert not (tmp_path / "out").exists()


def command(url: str, *arguments: str) -> list[str]:
    at = ["--rollout-url", url, "--trajectory-url", url]
    return [sys.executable, "-m", "polar_mesh.export", *arguments, *at]


def test_the_command_tells_what_it_did(mesh, tmp_path):
    service, _ = mesh
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        command(service.url, str(tmp_path), "--what", "sft", "--queue", "odd", "--reward-min", "0.75"),
        capture_output=True, text=True, timeout=60, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path}: 3 rows of 3 groups in 1 parts, 3 new\n  left out: 9 reward\n"


def test_a_terminal_has_a_progress_bar(mesh, tmp_path):
    service, _ = mesh
    near, far = os.openpty()
    done = subprocess.run(
        command(service.url, str(tmp_path), *(f"--task={one}" for one in TASKS)),
        stdout=subprocess.PIPE, stderr=far, timeout=60, env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True,
    )  # fmt: skip
    os.close(far)
    shown = os.read(near, 10_000).decode()
    os.close(near)
    assert shown.split("\r")[-2].strip() == f"[{'#' * 24}] 6/6 groups, 48 rows, 0 parts", shown
    assert b"48 rows of 6 groups in 1 parts, 48 new" in done.stdout


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a small disk")
def test_a_full_disk_is_one_error_and_leaves_no_torn_file(mesh, tmp_path):
    service, _ = mesh
    disk = tmp_path / "disk"
    disk.mkdir()
    # A file system of 16 KiB: the first part does not fit.
    run_it = " ".join(command(service.url, str(disk), *(f"--task={one}" for one in TASKS)))
    done = subprocess.run(
        ["bwrap", "--unshare-user", "--dev-bind", "/", "/", "--size", "16384", "--tmpfs", str(disk), "--",
         "sh", "-c", f"{run_it}; echo code $?; ls {disk}"],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False,
    )  # fmt: skip
    assert done.stderr == f"polar-export: no space left for {disk}: make room and run the same export again, it goes on\n"
    assert done.stdout.splitlines() == ["code 1", "README.md", "export.json"]
