"""A trainer's parameters as its engines know them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def engine_parameters(model: Any) -> Iterator[Iterator[tuple[str, Any]]]:
    """Name and tensor of each; to be read within the block.

    An engine serves the base of a PEFT model: its adapters are merged into that for the length of the block.
    """
    from accelerate.utils import is_peft_model

    if not is_peft_model(model):
        yield ((name, parameter.detach()) for name, parameter in model.named_parameters())
        return
    model.merge_adapter()
    try:
        yield _of_base(model)
    finally:
        # Left merged, they would count twice in the training.
        model.unmerge_adapter()


def _of_base(model: Any) -> Iterator[tuple[str, Any]]:
    """The base's own names, in place of those that PEFT gives them; none of the adapters, nor what they replace."""
    for name, parameter in model.named_parameters():
        if model.prefix in name or "original_module" in name:
            continue
        name = name.removeprefix("base_model.model.").replace(".base_layer", "")
        yield name.replace("modules_to_save.default.", ""), parameter.detach()
