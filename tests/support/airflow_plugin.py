"""pytest: one embedded Airflow for all tests of a file, and what each scenario took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from support.airflow_cluster import Airflow
from support.airflow_pipelines import AT_START, CATCHUP, write_project
from support.airflow_processes import modes_of_folders
from support.jobs_here import jobs_in_this_process
from support.planted import PLANTED
from support.projects import Project

Tell = Callable[[str], None]
Timed = Callable[[str], AbstractContextManager[None]]
_TOLD = "airflow"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """A running Airflow over all pipelines of `support.airflow_pipelines`.

    The first window of `catchup` was trained without it; then days went by.
    """
    project = Project(tmp_path_factory.mktemp("airflow"), environment=dict(PLANTED))
    write_project(project)
    first = CATCHUP.key(0)
    with jobs_in_this_process():
        project.forebay("run", CATCHUP.name, "--from", first, "--to", first)
    found = Airflow(project)
    found.facts["modes"] = modes_of_folders(project.root)
    try:
        found.up()
        found.facts["dags"] = {dag["dag_id"]: dag["is_paused"] for dag in found.api.dags()}
        found.facts["runs"] = found.api.dag_runs("~")  # of all DAGs
        found.unpause(*AT_START)
        yield found
    finally:
        found.down("--remove-database")


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Adds a line to the summary of the test session, on whichever worker the test ran."""
    return lambda line: record_property(_TOLD, line)


@pytest.fixture
def timed(tell: Tell) -> Timed:
    @contextmanager
    def measure(what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            tell(f"{time.monotonic() - began:7.1f} s  {what}")

    return measure


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    lines = [
        str(value)
        for report in sorted(reports, key=lambda report: report.stop)
        for name, value in report.user_properties
        if name == _TOLD
    ]
    if lines:
        terminalreporter.section("Airflow scenarios")
        for line in lines:
            terminalreporter.line(line)
