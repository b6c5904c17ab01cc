"""`forebay down`: stop the Airflow of this home and everything it started."""

from __future__ import annotations

from typing import Annotated

from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.home.paths import Home


def down(
    remove_database: Annotated[
        bool, option("--remove-database", help="Also remove the history of all runs; models stay.")
    ] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Stop Airflow, its database and the jobs of its tasks.

    No process is left running.

    Checkpoints of these jobs stay: after the next `forebay up`, their tasks continue from them.
    """
    from forebay.embedded.airflow.cluster import Embedded

    embedded = Embedded(Home.from_environment())
    before = embedded.state()
    was_running = before is not None and not before.over
    with working("stopping Airflow, its database and the jobs of its tasks"):
        cancelled = embedded.stop()
        if remove_database:
            embedded.remove_database()
    shown = Output(output)
    if shown.is_json:
        shown.json({"was_running": was_running, "cancelled_jobs": cancelled})
        return
    for job_id in cancelled:
        shown.line(f"job {job_id} is cancelled: its task continues after the next `forebay up`")
    if before is not None and before.state == "lost":
        shown.line("Airflow's keeper had died: its remaining processes have been stopped")
    else:
        shown.line("Airflow is down" if was_running else "no Airflow was running")
