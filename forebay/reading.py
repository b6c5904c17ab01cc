"""Rows of windows in your own program: planned, decoded and mixed by Forebay's data executors.

docs/reader.md shows how. May not be imported by anything that runs a job.
"""

from __future__ import annotations

from forebay.executors.reading.rows import WindowRows, read_windows
from forebay.mixture.features.layout import FeatureLayout, IdColumn

__all__ = ["FeatureLayout", "IdColumn", "WindowRows", "read_windows"]
