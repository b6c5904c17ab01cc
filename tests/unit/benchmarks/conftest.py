"""Modules of benchmarks are imported by their bare names, as their scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

# Last of all: some of the scripts have the names of packages.
sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
