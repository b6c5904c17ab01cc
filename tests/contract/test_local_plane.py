"""The local plane with real processes."""

from __future__ import annotations

from forebay.executors.planes.base import Plane
from forebay.executors.planes.local import LocalPlane
from forebay.testing.plane_suite import PlaneSuite


class TestLocalPlane(PlaneSuite):
    def make(self, job: str) -> Plane:
        return LocalPlane(job, adopts_orphans=False)
