"""Jobs of toy roles, whose processes never outlive their test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support.toy_roles.jobs import TESTS, ToyJobs, eventually

from forebay.home.paths import Home


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyJobs]:
    plan = tmp_path / "plan.json"
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("FOREBAY_TOY_PLAN", str(plan))
    toy = ToyJobs(Home(tmp_path / "home"), plan)
    toy.plan()
    yield toy
    for process in toy.processes():
        with suppress(psutil.NoSuchProcess):
            process.kill()
    eventually(lambda: not toy.processes())
