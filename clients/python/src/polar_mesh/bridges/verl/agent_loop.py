"""A session of the mesh for each row and sample that verl rolls out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from .chat import Chat
from .rows import Played, Window, rows
from .site import Settings, Site, site_of

#: The task of a row: a mapping as for ``Client.submit``, without ``task_id`` and ``num_samples``. Rows hold what verl's
#: dataset gives an agent loop: ``raw_prompt``, ``extra_info``, ``reward_model``, ``uid`` and so on.
TaskOf = Callable[[Mapping[str, Any]], Mapping[str, Any]]

#: How sessions are sampled, under the names of a task; verl says each.
_SAMPLING = ("temperature", "top_p", "top_k")


class SessionLost(RuntimeError):
    """A session has no reward, and neither have those that took its place: there is nothing to train or compare."""


class PolarAgentLoop(AgentLoopBase):
    """Made by verl for each row. What the rows of a process share, connections and the engine's address, is made once.

    The mesh tries sessions that are lost to infrastructure again by itself; one that has no reward even so is submitted
    once more, ``tries`` times in all, then raised as ``SessionLost``: none is told as a reward.

    Args:
        task: Makes the task of a row, or ``module:function`` that does. ``temperature``, ``top_p`` and ``top_k`` are verl's
            to say, and ``sampling.seed_base`` would make all samples of a row the same: tasks that name them are refused.
        rollout_url, trajectory_url: Addresses of the scheduler and the reconstructor.
        engine_port: Where the mesh finds verl's rollout servers, as the engine of its nodes: in the topology
            ``inference: {engine: sglang, scheduler: thunderagent, base_url: http://THIS-MACHINE:PORT, mode: token, stream:
            made}``. Of the workers on a machine the first one listens there. None: the mesh calls engines of its own.
        engine_host: Address to listen at; all by default, as nodes are other machines.
        consumer: Name of the durable cursor; one a training. It acknowledges all groups, by which they leave the store in
            time (``retention``): give each training a mesh, or a consumer and tasks of its own.
        traces: ``longest``: a session is one row, its trace with most trained ids. ``all``: a row for each trace, for
            trainers whose worker takes several (``AgentLoopWorkerTQ``); the one with most trained ids is the last.
        tries: Tasks submitted for one row at most.
        timeout_s: Seconds for a session, with what it waits; then DeadlineExceeded, and the session is cancelled.
        token, ca, cert, key: As of ``polar_mesh.Client``.
    """

    def __init__(
        self,
        *args: Any,
        task: str | TaskOf,
        rollout_url: str = "http://127.0.0.1:8080",
        trajectory_url: str = "http://127.0.0.1:8070",
        engine_port: int | None = None,
        engine_host: str = "0.0.0.0",
        consumer: str = "verl",
        traces: str = "longest",
        tries: int = 2,
        timeout_s: float = 3600.0,
        token: str | None = None,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if traces not in ("longest", "all"):
            raise ValueError(f"traces is longest or all, not {traces!r}")
        if tries < 1:
            raise ValueError("tries is at least 1")
        self._task: TaskOf = _named(task) if isinstance(task, str) else task
        secure = {"token": token, "ca": ca, "cert": cert, "key": key}
        self._settings = Settings(
            rollout_url,
            trajectory_url,
            consumer,
            engine_host,
            engine_port,
            tuple((name, value) for name, value in secure.items() if value is not None),
        )
        self._all = traces == "all"
        self._tries = tries
        self._timeout_s = timeout_s
        self._window = Window(self.rollout_config.prompt_length, self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """One session. Raises ValueError (a task that cannot be), SessionLost, and what ``Client.submit`` raises."""
        spec = _sampled(self._task(row), sampling_params)
        site = await self._site()
        for _ in range(self._tries):
            played = await site.play(spec, self._timeout_s)
            outputs = rows(played, self._window, self.tokenizer.eos_token_id, every=self._all)
            if outputs:
                return outputs if self._all else outputs[0]
        raise SessionLost(_why(played, self._tries))

    async def _site(self) -> Site:
        model_length = self.rollout_config.get("max_model_len")
        chat = Chat(
            self.tokenizer,
            self.rollout_config.multi_turn.format,
            dict(self.apply_chat_template_kwargs),
            # What is longer than a row could not be trained.
            min(model_length or self._window.ids, self._window.ids),
        )
        return await site_of(self._settings, self.server_manager, chat)


def _named(path: str) -> TaskOf:
    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name, None) if name else None
    if not callable(found):
        raise ValueError(f"task is module:function, and {path!r} names none")
    return found


def _sampled(spec: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The task as verl wants it sampled. Raises ValueError, with the field's name."""
    sampling = dict(spec.get("sampling") or {})
    for name in (*_SAMPLING, "seed_base"):
        if name in sampling:
            raise ValueError(f"sampling.{name} of a task is verl's to say: leave it out")
    penalty = params.get("repetition_penalty", 1.0)
    if penalty != 1.0:
        raise ValueError(f"repetition_penalty is {penalty:g}: harnesses cannot be sampled with one")
    given = {name: params[name] for name in _SAMPLING if params.get(name) is not None}
    return {**spec, "sampling": {**sampling, **given}}


def _why(played: Played, tries: int) -> str:
    trajectory = played.trajectory
    failure = trajectory.failure
    cause = f"{failure.reason}: {failure.message}" if failure else "its evaluator gave none"
    sessions = "session" if tries == 1 else f"session, the last of {tries},"
    return f"{sessions} {trajectory.session_id} has no reward ({trajectory.outcome}; {cause})"
