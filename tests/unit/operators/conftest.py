"""Airflow for tests of single classes: as a library, with a home that is never written to."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from forebay.home.paths import Home

# Airflow reads these when it is imported, and never again; processes that other tests start from
# here must not see them.
_HOME = tempfile.mkdtemp(prefix="forebay-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
_LIBRARY = {
    "_AIRFLOW__AS_LIBRARY": "1",  # or it takes over logging
    "AIRFLOW_HOME": _HOME,
}
with patch.dict(os.environ, _LIBRARY):
    for module in ("airflow.settings", "airflow.sdk.configuration"):
        import_module(module)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Airflow finds plugins by entry points; it refuses to look without a folder for others."""
    from airflow import settings

    monkeypatch.setattr(settings, "PLUGINS_FOLDER", str(tmp_path))
