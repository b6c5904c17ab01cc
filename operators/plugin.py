"""What Airflow loads into each of its components."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from forebay.operators.timetable import WindowTimetable


class ForebayPlugin(AirflowPlugin):
    """Makes Forebay's timetable known, so that the scheduler can read stored DAGs."""

    name = "forebay"
    timetables = [WindowTimetable]  # noqa: RUF012 - as Airflow declares it
