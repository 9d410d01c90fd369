"""One step of GRPO in plain torch, over what the stream delivers.

The ratio of the policy to the one that sampled is taken from the logprobs on record, token by token, so that a group may
come from weights of some steps ago.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from polar_mesh import rewards
from polar_mesh.torch import pad, token_logprobs
from transformers import PreTrainedModel

#: The ratio counts from 1 - CLIP to 1 + CLIP.
CLIP = 0.2
GRADIENT_NORM_MAX = 1.0


def step(
    model: PreTrainedModel, optimizer: torch.optim.Optimizer, groups: Iterable[rewards.Group]
) -> dict[str, float] | None:
    """Update the model by the groups' sessions; None where none of them tells anything.

    Returns means over the trained tokens, before the step: ``logprob_gap``, |logprob now - logprob on record|, which is 0
    but for rounding where the weights are those that sampled; ``clipped``, the share whose ratio is out of what counts.
    """
    samples = rewards.samples(groups, estimator="group_norm")
    if not any(sample.advantages.any() for sample in samples):
        return None
    batch = pad(samples)
    logits = model(**batch.inputs).logits
    change = (token_logprobs(logits, batch.input_ids) - batch.logprobs) * batch.loss_mask
    ratio = change.exp()
    gain = torch.minimum(ratio * batch.advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * batch.advantages)
    optimizer.zero_grad()
    (-batch.weights * gain).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
    optimizer.step()
    tokens = int(batch.loss_mask.sum())
    return {
        "tokens": tokens,
        "logprob_gap": float(change.detach().abs().sum()) / tokens,
        "clipped": float(((ratio.detach() - 1).abs() > CLIP).sum()) / tokens,
        "gradient_norm": float(norm),
    }
