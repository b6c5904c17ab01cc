"""`forebay cancel`: end a pipeline's running job. What is sealed stays and is gone on from."""

from __future__ import annotations

from typing import Annotated

import typer

from forebay.commands.output import DEFAULT_LINE, LineName, note
from forebay.home.paths import Home

WAIT_SECONDS = 30.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cancel")(cancel)


def cancel(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    line: LineName = DEFAULT_LINE,
) -> None:
    """End the job that trains a pipeline, if one does.

    The same `run` goes on from the newest checkpoint.
    """
    from forebay.executors.job.folder import JobFolder
    from forebay.executors.job.handle import JobRequest, attach

    home = Home.from_environment()
    for path in sorted(home.jobs.glob("*/job.json")):
        folder = JobFolder(path.parent)
        status = folder.observed_status(folder.stored_status())
        request = JobRequest.read(path.parent)
        mine = (request.pipeline_name, request.line) == (pipeline, line)
        if mine and status is not None and status.state in {"submitted", "running"}:
            handle = attach(home, request.job_id)
            handle.cancel()
            ended = handle.wait(WAIT_SECONDS)
            note(f"job {request.job_id} is {ended.state}")
            return
    note(f"no job of pipeline {pipeline!r} runs on line {line!r}")
