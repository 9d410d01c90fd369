"""What the weights in training and the engine that sampled disagree about, and the correction of a loss for it.

Ids were sampled under other weights (a version or more before) and by other kernels than those of the training step. With
``now`` for the log-probabilities in training, every ratio here is that of ``exp(now - engine)``::

    for step in polar_mesh.torch.micro_batches(rewards.samples(batches), tokens_max=16_384):
        now = polar_mesh.torch.token_logprobs(model(**step.inputs).logits, step.input_ids)
        correction = polar_mesh.off_policy.correct(step, now, level="token", ratio_max=2.0, keep=(0.5, 5.0))
        (-step.weights * step.advantages * correction.factors * now).sum().backward()
        gap = gap + correction.gap
    log(gap.metrics())

Sources: truncated importance sampling, Espeholt et al. 2018 (V-trace: arXiv 1802.01561) and Yao et al. 2025; ratios of
sequences by their geometric mean, GSPO (arXiv 2507.18071); estimators of the KL divergence, Schulman 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

from .torch import MicroBatch

#: What a ratio is of: each trained id; all of a sequence, as product; the same as geometric mean.
Level = Literal["token", "sequence", "geometric"]

#: Log-ratios are cut here before they are raised: beyond, a float32 holds no ratio that a loss could use.
LOG_RATIO_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Gap:
    """How far trained ids are from the policy in training. Those of micro-batches are added up with ``+``."""

    #: Trained ids.
    tokens: int = 0
    #: Of those, ids whose ratio was cut to ``ratio_max``, and ids that ``keep`` left out.
    truncated: int = 0
    left_out: int = 0
    #: Sums over trained ids: of engine - now, of ratio - 1 - log(ratio), of the ids' ratios and of their squares.
    log_sum: float = 0.0
    k3_sum: float = 0.0
    ratio_sum: float = 0.0
    square_sum: float = 0.0
    #: Largest difference of a trained id's logprobs, either way.
    difference_max: float = 0.0

    def __add__(self, other: Gap) -> Gap:
        return Gap(
            self.tokens + other.tokens,
            self.truncated + other.truncated,
            self.left_out + other.left_out,
            self.log_sum + other.log_sum,
            self.k3_sum + other.k3_sum,
            self.ratio_sum + other.ratio_sum,
            self.square_sum + other.square_sum,
            max(self.difference_max, other.difference_max),
        )

    def metrics(self) -> dict[str, float]:
        """For a log, all over trained ids: ``kl`` (mean of engine - now) and ``kl_k3`` (its estimate of less variance) of
        engine to now, ``effective_fraction`` (of the sample size, 1 = on policy), ``truncated_fraction``,
        ``left_out_fraction``, ``difference_max``. NaN where no id is trained."""
        tokens = self.tokens or math.nan
        return {
            "kl": self.log_sum / tokens,
            "kl_k3": self.k3_sum / tokens,
            "effective_fraction": self.ratio_sum**2 / (self.square_sum * tokens) if self.tokens else math.nan,
            "truncated_fraction": self.truncated / tokens,
            "left_out_fraction": self.left_out / tokens,
            "difference_max": self.difference_max,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """For one micro-batch; the tensors are [B, T], without gradient, and 0 where nothing is trained."""

    #: float32: what the loss of each id is multiplied with: its ratio, at most ``ratio_max``; 0 where it is left out.
    factors: torch.Tensor
    #: bool: trained, and not left out.
    kept: torch.Tensor
    gap: Gap


def correct(
    step: MicroBatch,
    now: torch.Tensor,
    *,
    level: Level = "token",
    ratio_max: float = 2.0,
    keep: tuple[float, float] = (0.0, math.inf),
) -> Correction:
    """Importance weights of a micro-batch's ids under the weights in training.

    Ids that are left out stay in what the step is divided by (``step.weights`` is made before it is known), as in
    ``rewards.samples`` sessions do whose advantage is 0.

    Args:
        now: float32[B, T], as ``polar_mesh.torch.token_logprobs`` gives them; at the engine's temperature.
        level: ``token``: least variance, biased for whole sequences. ``sequence``: unbiased, of much variance where
            sequences are long. ``geometric``: as sequence, whatever its length.
        ratio_max: Ratios above are cut to it; ``inf``: none.
        keep: Ids whose ratio lies outside of these, both included, are left out (of a sequence: all of its ids).

    Raises:
        ValueError: another level, or a shape that is not that of ``step``.
    """
    if level not in ("token", "sequence", "geometric"):
        raise ValueError(f"{level!r} is none of token, sequence, geometric")
    if now.shape != step.input_ids.shape:
        raise ValueError(f"logprobs are {list(now.shape)}, the micro-batch is {list(step.input_ids.shape)}")
    trained = step.loss_mask
    logs = torch.where(trained, now.detach().float() - step.logprobs, 0.0)
    ratios = _ratio(logs if level == "token" else _of_sequences(step, logs, mean=level == "geometric"))
    kept = trained & (ratios >= keep[0]) & (ratios <= keep[1])
    factors = torch.where(kept, ratios.clamp(max=ratio_max), 0.0)
    cut = int((kept & (ratios > ratio_max)).sum())
    return Correction(factors, kept, _gap(logs[trained], cut, int((trained & ~kept).sum())))


def _of_sequences(step: MicroBatch, logs: torch.Tensor, *, mean: bool) -> torch.Tensor:
    """At each id, the sum or the mean over the trained ids of its sequence."""
    # Where nothing is stands the index -1: one more row.
    at = step.sequences.remainder(len(step.samples) + 1).flatten()
    sums = logs.new_zeros(len(step.samples) + 1).index_add(0, at, logs.flatten())
    if mean:
        counts = torch.zeros_like(sums).index_add(0, at, step.loss_mask.flatten().to(sums.dtype))
        sums = sums / counts.clamp(min=1)
    return sums[at].view_as(logs)


def _ratio(logs: torch.Tensor) -> torch.Tensor:
    return logs.clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX).exp()


def _gap(logs: torch.Tensor, truncated: int, left_out: int) -> Gap:
    if not len(logs):
        return Gap()
    logs = logs.double()
    ratios = _ratio(logs)
    return Gap(
        tokens=len(logs),
        truncated=truncated,
        left_out=left_out,
        log_sum=-float(logs.sum()),
        k3_sum=float((ratios - 1 - logs).sum()),
        ratio_sum=float(ratios.sum()),
        square_sum=float((ratios**2).sum()),
        difference_max=float(logs.abs().max()),
    )
