"""Trajectories as files: traces, SFT rows and preference pairs, as JSON lines or Parquet.

    from polar_mesh.export import Rule, export

    export(client, "out", what="sft", format="parquet", tasks=["sum-1"], rule=Rule(reward_min=1.0))

``polar-export --help`` does the same from a shell. docs/export-format.md tells every column.
"""

from .run import Progress, Result, export
from .rule import Rule
from .schema import COLUMNS, Column
from .store import ExportError

__all__ = ["COLUMNS", "Column", "ExportError", "Progress", "Result", "Rule", "export"]
