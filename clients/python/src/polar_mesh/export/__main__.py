"""``python -m polar_mesh.export``: the same as ``polar-export``."""

import sys

from .cli import main

sys.exit(main())
