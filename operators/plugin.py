"""What Airflow loads into each of its components."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from forebay.operators.runs import run_listener
from forebay.operators.timetable import WindowTimetable


class ForebayPlugin(AirflowPlugin):
    """The timetable, so that the scheduler can read stored DAGs, and a listener for failed runs."""

    name = "forebay"
    timetables = [WindowTimetable]  # noqa: RUF012 - as Airflow declares it
    listeners = [run_listener]  # noqa: RUF012 - as Airflow declares it
