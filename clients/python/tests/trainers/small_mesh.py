"""The mesh as a bridge sees it: gRPC servers of its three APIs, behind which a small model plays sessions at once.

A session has two calls with a tool's answer between them. Its reward is the share of digits in what was sampled.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import torch
from support import Server, Trajectories, abort
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from polar_mesh.gen.polar.common.v1.session_pb2 import OUTCOME_COMPLETED, OUTCOME_INFRASTRUCTURE_ERROR
from polar_mesh.gen.polar.llm_proxy.v1 import policy_service_pb2 as policy
from polar_mesh.gen.polar.llm_proxy.v1 import policy_service_pb2_grpc as policy_grpc
from polar_mesh.gen.polar.reconstructor.v1.trajectory_pb2 import CallSpan, Trace, Trajectory, TrajectoryBatch
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2 as rollout
from polar_mesh.gen.polar.scheduler.v1 import scheduler_service_pb2_grpc as rollout_grpc

WORDS = ["<pad>", "<eos>", *"0123456789", *"abcdefghijklmnopqrstuvwxyz"]
DIGITS = range(2, 12)
SAMPLED = 6
TOOL = [WORDS.index(letter) for letter in "tool"]


def make_model(folder: Path) -> Path:
    """A model folder with its tokenizer, which knows nothing."""
    torch.manual_seed(1)
    words = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<pad>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    tokenizer.save_pretrained(folder)
    shape = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        eos_token_id=1,
        pad_token_id=0,
        dtype="float32",
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


class SmallMesh(rollout_grpc.RolloutServiceServicer, policy_grpc.PolicyServiceServicer):
    """Answers SubmitTask with the task's batch, played by the weights that were loaded last."""

    def __init__(self, model: Path) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()
        self.trajectories = Trajectories([])
        self.policy_version = 0
        self.paused = False
        self.submitted: list[rollout.SubmitTaskRequest] = []
        self.cancelled: list[str] = []
        #: Trained tokens of a session's forked part: each session then has a second, shorter trace.
        self.forked_tokens = 0
        self.without_reward: set[int] = set()
        #: Rewards are those of traces, and sessions have none.
        self.by_trace = False
        #: Numbers of the groups that the mesh loses, in their order.
        self.lost_groups: set[int] = set()
        #: So many cancels are refused first.
        self.cancels_refused = 0
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._server = Server(self._register)
        self.url = self._server.url

    def _register(self, server: grpc.Server) -> None:
        self.trajectories.register(server)
        rollout_grpc.add_RolloutServiceServicer_to_server(self, server)
        policy_grpc.add_PolicyServiceServicer_to_server(self, server)

    def stop(self) -> None:
        self._server.stop()

    def load(self, parameters: Iterator[tuple[str, Any]], version: int) -> str:
        """What a trainer's ``WeightTransfer`` is given; the parameters come while calls are held."""
        assert self.paused
        missing, unexpected = self.model.load_state_dict(dict(parameters), strict=False)
        assert not unexpected
        assert set(missing) <= {"lm_head.weight"}
        return f"step-{version}"

    def SubmitTask(self, request, context):
        self.submitted.append(request)
        with self._lock:
            batch = self._play(request.spec)
        self.trajectories.add(batch)
        return rollout.SubmitTaskResponse(task=rollout.Task(spec=request.spec))

    def CancelTask(self, request, context):
        if self.cancels_refused > 0:
            self.cancels_refused -= 1
            abort(context, grpc.StatusCode.PERMISSION_DENIED, "not yours", "PERMISSION_DENIED")
        self.cancelled.append(request.task_id)
        return rollout.CancelTaskResponse()

    def GetPolicy(self, request, context):
        answer = policy.GetPolicyResponse()
        answer.policy.policy_version = self.policy_version
        return answer

    def Pause(self, request, context):
        self.paused = True
        answer = policy.PauseResponse()
        answer.policy.pause_id = request.pause_id
        return answer

    def Resume(self, request, context):
        self.paused = False
        self.policy_version = max(self.policy_version, request.policy_version)
        return policy.ResumeResponse()

    def _play(self, spec) -> TrajectoryBatch:
        number = next(self._ids)
        if number in self.lost_groups:
            lost = [Trajectory(task_id=spec.task_id, group_id="g0", outcome=OUTCOME_INFRASTRUCTURE_ERROR)]
            lost[0].failure.reason, lost[0].failure.message = "SANDBOX_LOST", "gone"
            return TrajectoryBatch(batch_id=number, task_id=spec.task_id, group_id="g0", trajectories=lost)
        samples = spec.num_samples
        prompt = [WORDS.index(letter) for letter in spec.instruction]
        conversation = torch.tensor([prompt] * samples)
        conversation, first = self._sample(conversation)
        conversation = torch.cat([conversation, torch.tensor([TOOL] * samples)], dim=1)
        conversation, second = self._sample(conversation)
        mask = [1] * SAMPLED + [0] * len(TOOL) + [1] * SAMPLED
        logprobs = torch.cat([first, torch.zeros(samples, len(TOOL)), second], dim=1)
        return TrajectoryBatch(
            batch_id=number,
            task_id=spec.task_id,
            group_id="g0",
            trajectories=[
                self._trajectory(spec, index, prompt, conversation[index, len(prompt) :], mask, logprobs[index])
                for index in range(samples)
            ],
        )

    def _trajectory(self, spec, index, prompt, response, mask, logprobs) -> Trajectory:
        ids, trained = response.numpy(), np.array(mask) == 1
        reward = None if index in self.without_reward else float(np.isin(ids[trained], DIGITS).mean())
        version = self.policy_version
        spans = [CallSpan(start=at, length=SAMPLED, policy_version=version) for at in (0, len(ids) - SAMPLED)]
        whole = _trace(prompt, ids, trained, logprobs.numpy(), spans)
        cut = self.forked_tokens
        forks = [_trace(prompt, ids[:cut], trained[:cut], logprobs.numpy()[:cut], [])] if cut else []
        if self.by_trace:
            whole.reward, reward = reward, None
        return Trajectory(
            session_id=f"{spec.task_id}-{index}",
            task_id=spec.task_id,
            group_id="g0",
            sample_index=index,
            outcome=OUTCOME_COMPLETED,
            reward=reward,
            traces=[*forks, whole],
            policy_version_min=version,
            policy_version_max=version,
        )

    @torch.no_grad()
    def _sample(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = []
        for _ in range(SAMPLED):
            scores = torch.log_softmax(self.model(ids).logits[:, -1], dim=-1)
            drawn = torch.multinomial(scores.exp(), 1)
            ids = torch.cat([ids, drawn], dim=1)
            logprobs.append(scores.gather(1, drawn))
        return ids, torch.cat(logprobs, dim=1)


def _trace(prompt, ids, trained, logprobs, spans) -> Trace:
    return Trace(
        prompt_ids=np.array(prompt, dtype="<i4").tobytes(),
        response_ids=ids.astype("<i4").tobytes(),
        loss_mask=trained.astype("u1").tobytes(),
        logprobs=np.where(trained, logprobs, 0).astype("<f4").tobytes(),
        spans=spans,
    )
