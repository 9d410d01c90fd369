"""Importance weights of micro-batches against the same sums by hand, trace by trace."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support import trace, trajectory

import polar_mesh.torch as pt
from polar_mesh import off_policy, rewards

MASKS = ([0, 1, 1, 0, 1], [1, 1], [0, 0, 1])


def samples() -> list[rewards.Sample]:
    return rewards.samples([[trajectory(float(n), [trace(mask)]) for n, mask in enumerate(MASKS)]])


def shifted(step: pt.MicroBatch) -> torch.Tensor:
    """Logprobs in training: the n-th trained id of sequence s is off by (s + 1) (n - 1) / 4; others are rubbish."""
    now = torch.full(step.input_ids.shape, 77.0)
    for index in range(len(step.samples)):
        mine = step.loss_mask & (step.sequences == index)
        now[mine] = step.logprobs[mine] + (index + 1) * (torch.arange(int(mine.sum())) - 1) / 4
    return now.requires_grad_()


def log_ratios(order: list[int]) -> list[np.ndarray]:
    return [(place + 1) * (np.arange(sum(MASKS[which])) - 1) / 4 for place, which in enumerate(order)]


def order_of(step: pt.MicroBatch) -> list[int]:
    return [next(n for n, mask in enumerate(MASKS) if len(mask) == len(one.trace.loss_mask)) for one in step.samples]


@pytest.mark.parametrize("layout", ["padded", "packed"])
@pytest.mark.parametrize(
    ("level", "ratio"),
    [
        ("token", np.exp),
        ("sequence", lambda logs: np.full(len(logs), np.exp(logs.sum()))),
        ("geometric", lambda logs: np.full(len(logs), np.exp(logs.mean()))),
    ],
)
def test_factors_are_the_ratios_of_each_level(layout, level, ratio):
    (step,) = pt.micro_batches(samples(), tokens_max=100, layout=layout)
    now = shifted(step)
    correction = off_policy.correct(step, now, level=level, ratio_max=math.inf)
    for index, logs in enumerate(log_ratios(order_of(step))):
        mine = step.loss_mask & (step.sequences == index)
        np.testing.assert_allclose(correction.factors[mine].numpy(), ratio(logs), rtol=1e-5)
    assert not correction.factors[~step.loss_mask].any()
    assert torch.equal(correction.kept, step.loss_mask)
    assert not correction.factors.requires_grad


def test_ratios_are_cut_above_and_left_out_beyond_what_is_kept():
    (step,) = pt.micro_batches(samples(), tokens_max=100)
    ratios = np.exp(np.concatenate(log_ratios(order_of(step))))
    correction = off_policy.correct(step, shifted(step), ratio_max=1.2, keep=(0.7, 1.5))
    kept = (ratios >= 0.7) & (ratios <= 1.5)
    assert 0 < kept.sum() < len(ratios)
    np.testing.assert_array_equal(correction.kept[step.loss_mask].numpy(), kept)
    expected = np.where(kept, np.minimum(ratios, 1.2), 0)
    np.testing.assert_allclose(correction.factors[step.loss_mask].numpy(), expected, rtol=1e-5)
    assert correction.gap.left_out == (~kept).sum()
    assert correction.gap.truncated == (kept & (ratios > 1.2)).sum() > 0


def test_the_gap_of_a_step_is_that_of_its_micro_batches_together():
    (whole,) = pt.micro_batches(samples(), tokens_max=100)
    logs = np.concatenate(log_ratios(order_of(whole)))
    one = off_policy.correct(whole, shifted(whole)).gap.metrics()
    assert one["kl"] == pytest.approx(-logs.mean(), rel=1e-5)
    assert one["kl_k3"] == pytest.approx((np.exp(logs) - 1 - logs).mean(), rel=1e-5)
    assert one["effective_fraction"] == pytest.approx(np.exp(logs).sum() ** 2 / (np.exp(2 * logs).sum() * len(logs)))
    assert one["difference_max"] == pytest.approx(abs(logs).max())
    parts = pt.micro_batches(samples(), tokens_max=7)
    assert len(parts) > 1
    gaps = [off_policy.correct(step, step.logprobs.clone()).gap for step in parts]
    gap = sum(gaps, off_policy.Gap())
    assert gap.tokens == sum(map(sum, MASKS))
    assert gap.metrics() == {
        "kl": 0,
        "kl_k3": 0,
        "effective_fraction": 1,
        "truncated_fraction": 0,
        "left_out_fraction": 0,
        "difference_max": 0,
    }


def test_ratios_of_any_distance_are_numbers_and_none_at_all_is_no_error():
    assert math.isnan(off_policy.Gap().metrics()["kl"])
    (step,) = pt.micro_batches(samples(), tokens_max=100)
    far = off_policy.correct(step, step.logprobs + 500, level="sequence", ratio_max=math.inf)
    assert torch.isfinite(far.factors).all()


def test_what_does_not_fit_is_refused():
    (step,) = pt.micro_batches(samples(), tokens_max=100)
    with pytest.raises(ValueError, match="token, sequence, geometric"):
        off_policy.correct(step, step.logprobs, level="turn")
    with pytest.raises(ValueError, match="micro-batch is"):
        off_policy.correct(step, step.logprobs[:, 1:])
