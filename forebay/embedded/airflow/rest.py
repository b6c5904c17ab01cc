"""A thin client for Airflow's REST API, version 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from forebay.embedded.airflow.http import Endpoint, HttpSession

Reprocess = Literal["none", "failed", "completed"]
_PAGE = 100
_PAGES_MAX = 1_000


class AirflowApi:
    """Airflow as its users see it. Results are the API's JSON objects.

    Every call has a deadline. A refusal by the API is an error with the API's own text:
    NotFoundError for 404, ConflictError for 409, ApiError for the rest; an API server that does
    not answer is an InfrastructureError.
    """

    def __init__(self, endpoint: Endpoint, timeout_seconds: float = 30.0) -> None:
        """`timeout_seconds` bounds each request."""
        self._http = HttpSession(endpoint, timeout_seconds)

    def health(self) -> dict[str, Any]:
        """Status and last heartbeat by component, as `/monitor/health` reports them."""
        return self._http.get("/monitor/health")

    def dags(self) -> list[dict[str, Any]]:
        """All DAGs that are not stale."""
        return self._pages("/dags", "dags")

    def dag(self, dag_id: str) -> dict[str, Any]:
        return self._http.get(f"/dags/{_part(dag_id)}")

    def pause(self, dag_id: str, paused: bool) -> dict[str, Any]:  # noqa: FBT001 - reads well
        return self._http.patch(f"/dags/{_part(dag_id)}", {"is_paused": paused})

    def import_errors(self) -> list[dict[str, Any]]:
        """Files that Airflow could not import, each with its message as `stack_trace`."""
        return self._pages("/importErrors", "import_errors")

    def create_backfill(
        self,
        dag_id: str,
        first: datetime,
        last: datetime,
        reprocess: Reprocess = "none",
        active_runs_max: int = 10,
        conf: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Start a backfill of the windows that start in [first, last], both included.

        The defaults are the API's; the form in Airflow's UI has 1 active run. No run of a paused
        DAG starts.
        """
        body = {
            "dag_id": dag_id,
            "from_date": _text(first),
            "to_date": _text(last),
            "reprocess_behavior": reprocess,
            "max_active_runs": active_runs_max,
        }
        return self._http.post("/backfills", {**body, **({"dag_run_conf": conf} if conf else {})})

    def backfill(self, backfill_id: int) -> dict[str, Any]:
        """One backfill; `completed_at` is set up to 30 s after its last run ended."""
        return self._http.get(f"/backfills/{backfill_id}")

    def dag_runs(self, dag_id: str) -> list[dict[str, Any]]:
        """All runs of a DAG, sorted by window."""
        path = f"/dags/{_part(dag_id)}/dagRuns?order_by=logical_date"
        return self._pages(path, "dag_runs")

    def dag_run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        return self._http.get(_run(dag_id, run_id))

    def trigger(
        self, dag_id: str, logical_date: datetime | None, conf: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        body = {"logical_date": _text(logical_date) if logical_date else None, "conf": conf or {}}
        return self._http.post(f"/dags/{_part(dag_id)}/dagRuns", body)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        return self._pages(f"{_run(dag_id, run_id)}/taskInstances", "task_instances")

    def task_instance(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        return self._http.get(_task(dag_id, run_id, task_id))

    def clear(
        self,
        dag_id: str,
        run_id: str,
        task_ids: Sequence[str] | None = None,
        downstream: bool = False,  # noqa: FBT001, FBT002 - as the check box in the UI
    ) -> list[dict[str, Any]]:
        """Clear tasks of a run, or all of them: they run again. Returns what was cleared."""
        body: dict[str, Any] = {
            "dry_run": False,
            "dag_run_id": run_id,
            "only_failed": False,
            "include_downstream": downstream,
        }
        if task_ids is not None:
            body["task_ids"] = list(task_ids)
        answer = self._http.post(f"/dags/{_part(dag_id)}/clearTaskInstances", body)
        return list(answer["task_instances"])

    def set_run_state(
        self, dag_id: str, run_id: str, state: Literal["queued", "success", "failed"]
    ) -> dict[str, Any]:
        return self._http.patch(_run(dag_id, run_id), {"state": state})

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:  # noqa: ANN401 - any JSON
        path = f"{_task(dag_id, run_id, task_id)}/xcomEntries/{_part(key)}?deserialize=true"
        return self._http.get(path)["value"]

    def links(self, dag_id: str, run_id: str, task_id: str) -> dict[str, str | None]:
        return dict(self._http.get(f"{_task(dag_id, run_id, task_id)}/links")["extra_links"])

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> list[str]:
        """Lines of a task's log, errors with their type and text, without Airflow's own fields."""
        path = f"{_task(dag_id, run_id, task_id)}/logs/{try_number}?full_content=true"
        content = self._http.get(path)["content"]
        if isinstance(content, str):
            return content.splitlines()
        return [text for line in content for text in _log_lines(line)]

    def _pages(self, path: str, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        join = "&" if "?" in path else "?"
        for _ in range(_PAGES_MAX):
            page = self._http.get(f"{path}{join}limit={_PAGE}&offset={len(found)}")
            found += page[key]
            if not page[key] or len(found) >= page["total_entries"]:
                break
        return found


def _log_lines(line: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """The lines of text of one log entry."""
    if not isinstance(line, dict):
        yield str(line)
        return
    yield str(line["event"])
    for error in line.get("error_detail") or []:
        yield from f"{error['exc_type']}: {error['exc_value']}".splitlines()


def _part(text: str) -> str:
    return quote(text, safe="")


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{_part(dag_id)}/dagRuns/{_part(run_id)}"


def _task(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_run(dag_id, run_id)}/taskInstances/{_part(task_id)}"


def _text(instant: datetime) -> str:
    if instant.tzinfo is None:
        raise ValueError(f"{instant} has no time zone")
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
