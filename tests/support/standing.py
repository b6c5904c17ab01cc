"""The processes of a line that stay, as others find them, and what its model says."""

from __future__ import annotations

from contextlib import suppress

import psutil

from forebay.executors.job.runners import RunnerPlace
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.system.processes.identity import environment_variable
from forebay.system.processes.parent import JOB_ID_NAME
from support.projects import Project


def runner_of(project: Project, pipeline: str = "ads") -> RunnerPlace:
    return RunnerPlace(Home(project.home), pipeline, "main")


def processes(project: Project, pipeline: str = "ads") -> dict[str, int]:
    """The processes of the line's runner by what they run: pids."""
    found, name = {}, runner_of(project, pipeline).name
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if environment_variable(each.pid, JOB_ID_NAME) == name:
                command = " ".join(each.cmdline())
                for module in ("supervisor", "driver", "data_executor", "trainer"):
                    if f"forebay.executors.{module} " in command:
                        found[module] = each.pid
    return found


def trained(project: Project) -> dict[str, dict[str, int]]:
    """What the model says that it has seen."""
    seen = ModelChain(Home(project.home), "ads").links()[-1].seen
    return {name: each.model_dump() for name, each in seen.items()}
