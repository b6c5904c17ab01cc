"""Whether anything that the demo started is still running."""

from __future__ import annotations

import time

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.kafka.broker import BROKER_ID
from forebay.embedded.layout import Layout
from forebay.errors import InfrastructureError
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.parent import JOB_ID_NAME
from forebay.system.processes import environment_variable, processes_with

END_SECONDS = 10.0
_POLL_SECONDS = 0.1


def require_nobody_left(home: Home, *, airflow: bool) -> None:
    """Check that all processes of jobs have ended, and those of Airflow if it was stopped.

    A broker that the demo started is stopped later.

    Raises:
        InfrastructureError: when one is still running after a few seconds.
    """
    deadline = time.monotonic() + END_SECONDS
    while left := _left(home, airflow=airflow):
        if time.monotonic() > deadline:
            raise InfrastructureError(f"processes that the demo started are still running: {left}")
        time.sleep(_POLL_SECONDS)


def _left(home: Home, *, airflow: bool) -> list[int]:
    root = str(home.root)
    found = {
        one.pid
        for one in processes_with({ENVIRONMENT_NAME: root})
        if environment_variable(one.pid, JOB_ID_NAME) not in {None, BROKER_ID}
    }
    if airflow:
        found |= {one.pid for one in left_processes(Layout(home))}
        found |= {one.pid for one in Embedded(home).status() if one.pid is not None}
    return sorted(found)
