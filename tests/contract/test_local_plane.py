"""The local plane with real processes."""

from __future__ import annotations

from pathlib import Path

from forebay.executors.planes.base import Plane
from forebay.executors.planes.local import LocalPlane
from forebay.testing.plane_suite import PlaneSuite


class TestLocalPlane(PlaneSuite):
    def make(self, job_dir: Path) -> Plane:
        return LocalPlane(job_dir, adopts_orphans=False)
