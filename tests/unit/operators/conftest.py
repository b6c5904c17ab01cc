"""Airflow for tests of single classes: as a library, with a home that nothing is written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

# Before anything imports Airflow: it reads its settings once, and takes over logging otherwise.
os.environ["_AIRFLOW__AS_LIBRARY"] = "1"
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="forebay-airflow-")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Airflow finds plugins by entry points; it refuses to look without a folder for others."""
    from airflow import settings

    monkeypatch.setattr(settings, "PLUGINS_FOLDER", str(tmp_path))
