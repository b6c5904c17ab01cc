"""`forebay cancel`: end a pipeline's running job. A later run continues from what is sealed."""

from __future__ import annotations

from forebay.commands.shared import arguments
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import note

WAIT_SECONDS = 30.0


def cancel(
    pipeline: arguments.PipelineName,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """End the job that trains a pipeline, if there is one.

    The same `run` command then continues from the newest checkpoint.
    """
    from forebay.executors.job.stored_jobs import jobs_of
    from forebay.executors.job.submit import attach
    from forebay.home.database.format import open_home

    home = open_home()
    for job in jobs_of(home, pipeline, line, unended=True):
        if job.status.is_active:
            with working(f"ending job {job.job_id}"):
                handle = attach(home, job.job_id)
                handle.cancel()
                ended = handle.wait(WAIT_SECONDS)
            note(f"job {job.job_id} is {ended.state}")
            return
    require_known(home, pipeline, config, line)
    note(f"no job of pipeline {pipeline!r} is running on line {line!r}")
