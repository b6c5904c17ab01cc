"""A plane and a role of another package, found by entry points: nothing of ours names them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.jobs import folder_of
from support.others_plane import OthersPlane
from support.toy_roles.jobs import TESTS, ToyJobs, eventually

from forebay.config.specs.jobs import JobSpec
from forebay.errors import ConfigError
from forebay.executors.planes.base import Plane
from forebay.executors.planes.named import make_plane
from forebay.executors.roles.table import roles
from forebay.testing.plane_suite import PlaneSuite

POINTS = """
[forebay.planes]
others = support.others_plane:OthersPlane
[forebay.roles]
cache = support.others_role:CACHE
"""


class TestOthersPlane(PlaneSuite):
    def make(self, job: str) -> Plane:
        return OthersPlane(job)


@pytest.fixture
def installed(jobs: ToyJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyJobs:
    package(tmp_path / "site", POINTS)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(tmp_path / "site")]))
    return jobs


def package(folder: Path, points: str) -> None:
    info = folder / "others-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def test_a_job_runs_on_their_plane_with_their_role(installed: ToyJobs) -> None:
    handle = installed.submit(plane="others", roles={"trainer": {"memory": "1GiB"}})
    status = installed.serving(handle, "driver-0", "data-0", "trainer-0", "cache-0")
    assert (folder_of(handle).logs / "others-plane").exists()
    eventually(lambda: handle.status().unmet == {"trainer-0": "this plane has no limits"})
    os.kill(status.pids["cache-0"], signal.SIGKILL)
    eventually(lambda: handle.status().restarts.get("cache") == 1)
    handle.cancel()
    assert handle.wait(20).state == "cancelled"


def test_what_is_not_installed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="no plane 'clouds' is installed, but inline, local"):
        JobSpec.model_validate({"plane": "clouds"})
    with pytest.raises(ConfigError, match="'clouds' is not installed here, but inline"):
        make_plane("clouds", "job")


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("pathlib:Path", "is not a role"),
        ("forebay.executors.roles.table:DATA", "is not a role with a name of its own"),
        ("odd:ROLE", "is not a role with a name of its own"),
        ("forebay.executors.roles.table:CACHE", "cannot be imported: .*'CACHE'"),
        ("no_such_module:CACHE", "cannot be imported: .*'no_such_module'"),
    ],
)
def test_an_entry_point_that_is_no_role_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, says: str
) -> None:
    package(tmp_path, f"[forebay.roles]\nx = {point}\n[forebay.planes]\nx = {point}\n")
    (tmp_path / "odd.py").write_text(
        "from dataclasses import replace\n"
        "from forebay.executors.roles.table import DATA\n"
        "ROLE = replace(DATA, name='../data')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=rf"entry point 'x' of forebay.roles .* {says}"):
        roles()
    if "imported" in says:
        with pytest.raises(ConfigError, match=rf"job.plane: 'x' .* {says}"):
            make_plane("x", "job")
