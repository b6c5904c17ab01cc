"""The data driver: who reads which task, from which position. One process for each job.

Run as `python -m forebay.executors.driver --job DIR --index 0 --attempt N`.
docs/internals/protocol.md says what it may forget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.look.lags import commit_group
from forebay.datatasks.planning.open_source import open_source, source_class
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Commits
from forebay.executors.arrow_start import start_arrow
from forebay.executors.driver.growth import Grower
from forebay.executors.driver.hazards import Hazards
from forebay.executors.driver.journal import Journal
from forebay.executors.driver.offset_commits import SealCommitter
from forebay.executors.driver.service import DriverService
from forebay.executors.driver.state import DriverState
from forebay.executors.driver.window import ServedWindow
from forebay.executors.job.request import JobRequest
from forebay.executors.link.protocol import RoleLink
from forebay.executors.role import Given, run_role
from forebay.executors.roles.table import DRIVER
from forebay.executors.wire.rpc import RpcServer
from forebay.home.paths import Home
from forebay.system.clock import utc_now
from forebay.system.liveness import waiting

if TYPE_CHECKING:
    from forebay.datatasks.planning.growth import WindowGrowth
    from forebay.datatasks.plans.plan import WindowPlan

_SPARE_THREADS = 16
_LOG = logging.getLogger(__name__)


class Driver:
    def __init__(self, link: RoleLink, attempt: int) -> None:
        request = link.request("the driver")
        pipeline = request.pipeline_spec()
        names, job = pipeline.use_names, pipeline.job
        home = Home(Path(request.home), request.alone)
        ledger = Ledger(home, pipeline.name, request.line)
        hazards = Hazards(link.suspicions, partial(home.model, pipeline.name, request.line))
        self._link = link
        self._journal = Journal(link.journal)
        self.state = DriverState(
            self._journal,
            attempt,
            lambda window, generation: ServedWindow(
                ledger, window, generation, names, job, hazards
            ),
            job.failover.heartbeat_timeout.total_seconds(),
        )
        openers = committing_sources(request) if request.commits else {}
        commits = SealCommitter(partial(commit_group, pipeline.name), openers)
        self._service = DriverService(self.state, hazards, commits)
        self._grower = Grower(self._service, ledger, partial(_growth, request, ledger))
        threads = _SPARE_THREADS + 2 * job.roles.data.count
        self._server = RpcServer(link, self._service.methods, threads)

    def start(self) -> None:
        self._service.start()
        self._grower.start()
        self._server.start()
        self._link.serve(self._server.address)
        _LOG.info("driver %d listens on %s", self.state.incarnation, self._server.address)

    def stop(self) -> None:
        self._service.stop()
        self._server.stop()
        self._journal.close()


def committing_sources(request: JobRequest) -> Mapping[str, Callable[[], Commits]]:
    """Openers of the sources whose storage stores positions too, by the name of each use."""
    root = Path(request.project_root)
    kinds = {name: kind_named(spec.kind) for name, spec in request.source_specs().items()}
    committing = [
        name
        for name, kind in kinds.items()
        if not kind.bounded and issubclass(source_class(kind), Commits)
    ]
    openers: dict[str, Callable[[], Commits]] = {
        name: partial(_opened, spec, root)
        for name, spec in request.sources_to_open(committing).items()
    }
    uses = request.pipeline_spec().uses
    return {use.name: openers[use.source] for use in uses if use.source in openers}


def _growth(request: JobRequest, ledger: Ledger, plan: WindowPlan) -> WindowGrowth:
    from forebay.datatasks.planning.growth import WindowGrowth  # most windows are closed

    pipeline, root = request.pipeline_spec(), Path(request.project_root)
    sources = request.sources_to_open(pipeline.source_names)
    return WindowGrowth(ledger, plan, pipeline, sources, root, utc_now)


def _opened(spec: SourceSpec, root: Path) -> Commits:
    return cast("Commits", open_source(spec, root))


def main(arguments: list[str] | None = None) -> None:
    run_role(DRIVER, run, arguments)


def run(given: Given) -> None:
    """In a process that is set up."""
    start_arrow()
    driver = Driver(given.link, given.attempt)
    driver.start()
    with waiting():  # the threads that answer and commit show the driver's progress
        given.stop.wait()
    driver.stop()
