"""Trainer's client of polar-mesh.

    with polar_mesh.Client("http://127.0.0.1:8080", "http://127.0.0.1:8070") as client:
        client.submit({"task_id": "t-1", "instruction": "...", "num_samples": 8, "harness": {"name": "pi"}})
        for batch in client.stream(consumer="trainer"):
            train(batch.trajectories)
            batch.ack()
"""

from .batches import Batch, Drift, Failure, Stats, Trace, Trajectory
from .captures import OpenSession
from .client import Client
from .columns import Columns
from .errors import FieldFault, PolarError
from .evaluator import EvaluatorClient
from .experts import RoutedExperts
from .filters import Filter
from .images import Image, image_bytes
from .journal import Journal
from .policy import Pause, PolicyClient
from .spans import CallSpan, PolicyRun
from .specs import task_spec
from .stream import TrajectoryStream

__all__ = [
    "Batch",
    "CallSpan",
    "Client",
    "Columns",
    "Drift",
    "EvaluatorClient",
    "Failure",
    "FieldFault",
    "Filter",
    "Image",
    "Journal",
    "OpenSession",
    "Pause",
    "PolarError",
    "PolicyClient",
    "PolicyRun",
    "RoutedExperts",
    "Stats",
    "Trace",
    "Trajectory",
    "TrajectoryStream",
    "image_bytes",
    "task_spec",
]
