"""The health of each component, as Airflow's API reports it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from forebay.embedded.airflow import components as parts

# Components that report to the database, by their names in Airflow's report.
REPORTED = {
    parts.SCHEDULER: "scheduler",
    parts.TRIGGERER: "triggerer",
    parts.DAG_PROCESSOR: "dag_processor",
}


def component_health(report: Mapping[str, Any]) -> dict[str, str]:
    """`healthy` or `unhealthy` by component, from `/monitor/health`.

    The API server answered, so it is healthy; whether the database answered is in the report.
    """
    found = {name: _status(report, key) for name, key in REPORTED.items()}
    return {
        parts.DATABASE: _status(report, "metadatabase"),
        parts.API_SERVER: "healthy",
        **found,
    }


def last_beat(report: Mapping[str, Any], name: str) -> datetime | None:
    key = REPORTED[name]
    beat = (report.get(key) or {}).get(f"latest_{key}_heartbeat")
    return datetime.fromisoformat(beat) if beat else None


def _status(report: Mapping[str, Any], key: str) -> str:
    return str((report.get(key) or {}).get("status") or "unhealthy")
