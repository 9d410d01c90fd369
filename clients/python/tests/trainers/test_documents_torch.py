"""The documents' blocks that need torch run, and a step of theirs moves the model."""

from __future__ import annotations

import pytest
import torch
from documents import blocks, needs_torch, run
from test_torch import model, samples_of  # noqa: F401 (a fixture)

from polar_mesh import off_policy, rewards


@pytest.mark.parametrize("text", [one for one in blocks() if needs_torch(one.values[0])])
def test_a_block_makes_a_step(text, model):  # noqa: F811
    weights = [parameter.clone() for parameter in model.parameters()]
    names = {
        "rewards": rewards,
        "batches": [[one.trajectory for one in samples_of(5, 8, 3)]],
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=1.0),
        "torch": torch,
        "off_policy": off_policy,
    }
    run(text, names)
    names["optimizer"].step()
    assert any(not torch.equal(*pair) for pair in zip(weights, model.parameters(), strict=True))
