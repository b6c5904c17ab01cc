"""The local planes with real processes: that of one job, and that of a runner."""

from __future__ import annotations

from forebay.executors.planes.base import Plane
from forebay.executors.planes.local import LocalPlane
from forebay.executors.planes.standing import StandingPlane
from forebay.testing.plane_suite import PlaneSuite


class TestLocalPlane(PlaneSuite):
    def make(self, job: str) -> Plane:
        return LocalPlane(job, adopts_orphans=False)


class TestStandingPlane(PlaneSuite):
    """Its processes say nothing of a job that is over: none of them stays."""

    def make(self, job: str) -> Plane:
        return StandingPlane(job, adopts_orphans=False)
