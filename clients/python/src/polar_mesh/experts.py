"""Which experts of a mixture-of-experts model the engine routed the ids of a trace to, for a trainer to replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .gen.polar.reconstructor.v1 import trajectory_pb2

_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<u2")}


@dataclass(frozen=True, slots=True, eq=False)
class RoutedExperts:
    """The arrays are read-only views. Row ``i`` is that of id ``i`` of ``prompt_ids`` followed by ``response_ids``.

    Shapes: ``rows`` uint8 or uint16 [P + R, layers, top_k], numbers of experts; ``known`` uint8[P + R], 1 = the row
    is the engine's, 0 = it is not known and all zeros. A model reads an id to sample the next one, so the id that was
    sampled last has no row.
    """

    rows: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
    known: npt.NDArray[np.uint8]


def read_experts(message: trajectory_pb2.TraceExperts, ids: int) -> RoutedExperts:
    """Those of a trace of so many ids. Raises ValueError for columns that do not fit."""
    dtype = _DTYPES.get(message.item_bytes)
    if dtype is None:
        raise ValueError(f"experts of {message.item_bytes} bytes")
    known = np.frombuffer(message.known, np.uint8)
    rows = np.frombuffer(message.rows, dtype)
    if len(known) != ids:
        raise ValueError(f"{ids} ids, {len(known)} rows of experts")
    return RoutedExperts(rows.reshape(ids, message.layers, message.top_k), known)
