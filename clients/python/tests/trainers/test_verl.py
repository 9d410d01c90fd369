"""The bridge in verl's own agent loop worker, in front of a whole mesh whose engine is verl's rollout servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time

import numpy as np
import polar_mesh.aio
import pytest
import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from polar_mesh.bridges.verl.site import close_sites
from support import free_port
from tensordict import NonTensorData, NonTensorStack, TensorDict
from transformers import AutoModelForCausalLM
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.protocol import DataProto
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl_setup import STEP, UNGRADED, config, loops, rescored, servers

import base
from mesh import ROOT, running

TOLERANCE = 1e-4

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model():
    return base.base_model()


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Ray on this machine, whose processes find this folder's modules."""
    paths = os.pathsep.join(path for path in sys.path if path)
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    yield
    ray.shutdown()


@contextlib.contextmanager
def mesh(folder, engine_port):
    """The addresses of scheduler and reconstructor; the engine is yet to listen."""
    rollout, reconstructor, proxy, prewarm, harness, evaluator, nats = (free_port() for _ in range(7))
    engine = {"engine": "sglang", "scheduler": "thunderagent", "base_url": f"http://127.0.0.1:{engine_port}"}
    node = {
        "id": "local",
        "host": "127.0.0.1",
        "port": proxy,
        "runtime_prewarm_port": prewarm,
        "harness_executor_port": harness,
        "evaluator_port": evaluator,
        "inference": {**engine, "mode": "token", "stream": "made"},
        "max_run_workers": 4,
        "max_postrun_workers": 4,
    }
    topology = folder / "topology.yaml"
    topology.write_text(
        json.dumps(
            {
                "rollout": {"host": "127.0.0.1", "port": rollout},
                "reconstructor": {"host": "127.0.0.1", "port": reconstructor},
                "gateway": {"nodes": [node]},
                "nats": {"port": nats},
                "data_dir": str(folder / "mesh"),
            }
        )
    )
    command = [ROOT / "node_modules/.bin/node", ROOT / "bin/polar.js", "up", "-c", topology, "--json"]
    with running(command, folder):
        yield f"http://127.0.0.1:{rollout}", f"http://127.0.0.1:{reconstructor}"


def prompts(houses, samples):
    """As verl's trainer gives them: each row of the dataset as often as it is sampled."""
    rows = [house for house in houses for _ in range(samples)]
    batch = DataProto(meta_info={"global_steps": STEP, "validate": False})
    batch.non_tensor_batch = {
        "raw_prompt": np.array([[{"role": "user", "content": "play"}]] * len(rows), dtype=object),
        "extra_info": np.array([{"house": house} for house in rows], dtype=object),
        "uid": np.array([f"house-{house}" for house in rows], dtype=object),
        "index": np.array(rows),
    }
    return batch


def test_verls_worker_plays_sessions_of_the_mesh_and_its_servers_sample_them(model, tmp_path):
    port = free_port()
    with mesh(tmp_path, port) as (rollout_url, trajectory_url):
        urls = {"rollout_url": rollout_url, "trajectory_url": trajectory_url}
        file = loops(tmp_path, **urls, engine_port=port, engine_host="127.0.0.1", consumer="verl-test")
        whole = config(model, file)
        client, actors = servers(whole, model)

        async def play():
            try:
                batch = await AgentLoopWorker(whole, client).generate_sequences(prompts([1, 2], 3))
                async with polar_mesh.aio.Client(rollout_url, trajectory_url) as reader:
                    return batch, await acknowledged(reader, "verl-test", 6)
            finally:
                await close_sites()

        batch, consumer = asyncio.run(play())
        asked = [one for actor in actors for one in ray.get(actor.told.remote())]

    assert consumer.pending == 0
    assert len(batch) == 6
    trained = batch.batch["response_mask"].bool()
    assert (trained.sum(1) > 0).all()
    small = AutoModelForCausalLM.from_pretrained(model)
    for row in range(len(batch)):
        mask = batch.batch["attention_mask"][row].bool()
        ids = batch.batch["input_ids"][row][mask].tolist()
        told = batch.batch["rollout_log_probs"][row][trained[row]]
        places = torch.cat([torch.zeros(256, dtype=torch.bool), trained[row]])[mask][1:]
        again = rescored(small, ids)[places]
        assert torch.allclose(told, again, atol=TOLERANCE)
    # What the servers were given is the beginning of a row, id by id, whichever turn it was.
    attended = batch.batch["attention_mask"].bool()
    sequences = [ids[mask].tolist() for ids, mask in zip(batch.batch["input_ids"], attended, strict=True)]
    assert all(any(ids == row[: len(ids)] for row in sequences) for ids, _ in asked)
    assert len(asked) > len(batch)
    assert all(params["temperature"] == 1.0 and params["logprobs"] is True for _, params in asked)
    # The reward lies on the last id of each row.
    scores = batch.batch["rm_scores"]
    assert set(scores.sum(1).tolist()) <= {0.0, 1.0}
    assert (batch.non_tensor_batch["min_global_steps"] == STEP).all()
    assert (batch.non_tensor_batch["__num_turns__"] > 0).all()
    assert set(batch.meta_info["reward_extra_keys"]) == {
        "polar_traces_left_out",
        "polar_trained_tokens_left_out",
        "polar_trained_tokens_cut_off",
    }


async def acknowledged(client, name, groups):
    """The consumer, when it has acknowledged so many groups."""
    for _ in range(200):
        for one in await client.list_consumers():
            if one.name == name and sum(one.dropped_groups.values()) == groups:
                return one
        await asyncio.sleep(0.1)
    raise AssertionError("the groups were not acknowledged")


def test_a_worker_that_takes_several_rows_gets_every_trace_and_tells_a_lost_group(model, tmp_path):
    tq.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
    port = free_port()
    with mesh(tmp_path, port) as (rollout_url, trajectory_url):
        urls = {"rollout_url": rollout_url, "trajectory_url": trajectory_url}
        file = loops(tmp_path, **urls, engine_port=port, engine_host="127.0.0.1", traces="all")
        whole = config(model, file)
        whole.actor_rollout_ref.rollout.n = 2
        worker = AgentLoopWorkerTQ.remote(whole, servers(whole, model)[0])
        rows = {
            "raw_prompt": [[{"role": "user", "content": "play"}]] * 2,
            "extra_info": [{"house": 1}, {"house": UNGRADED}],
            "uid": ["played", "ungraded"],
            "index": [0, 1],
        }
        stacked = {name: NonTensorStack(*map(NonTensorData, values)) for name, values in rows.items()}
        batch = TensorDict({**stacked, "global_steps": NonTensorData(STEP)}, batch_size=2)
        ray.get(worker.generate_sequences.remote(batch))
        tags = settled(["played", "ungraded"])
        ray.kill(worker)
    assert tags["played"]["status"] == "finished"
    assert tags["ungraded"]["status"] == "failure"
    played = sorted(key for key in tags if key.startswith("played_"))
    assert {"played_0_0", "played_1_0"} <= set(played)
    assert all(tags[key]["max_global_steps"] == STEP for key in played)
    assert not any(key.startswith("ungraded_") for key in tags)


def settled(uids):
    """The tags of all rows, when none of these runs any more."""
    for _ in range(1200):
        tags = tq.kv_list(partition_id="train").get("train", {})
        if all(tags.get(uid, {}).get("status") in ("finished", "failure") for uid in uids):
            return tags
        time.sleep(0.1)
    raise AssertionError("the rows did not end")
