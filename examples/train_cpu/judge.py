"""The evaluator's test: whether the doors of tried.json lead out of the house of keys.json. Runs in a fresh sandbox."""

import json
from pathlib import Path

import doors

keys, tried = (json.loads(Path(name).read_text()) for name in ("keys.json", "tried.json"))
print("PASSED" if doors.is_out(keys, tried) else "FAILED", "out")
