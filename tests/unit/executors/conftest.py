"""A line without windows, and runs whose supervisors are scripted, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.scripted_runs import Runs, scripted_runs

from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.format import record_format
from forebay.home.paths import Home


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    record_format(Home(tmp_path))
    return ModelChain(Home(tmp_path), "ads")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with scripted_runs(tmp_path, monkeypatch) as made:
        monkeypatch.setenv("FOREBAY_HOME", str(made.stages.home.root))
        yield made
