"""What a run's task has to do: for which window, in which pass, and after how many clears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forebay.config.specs.windows import Interval, Window, WindowGrid
from forebay.errors import UsageError
from forebay.operators.runs.task_ids import TIMER
from forebay.system.instants import from_us

if TYPE_CHECKING:
    from airflow.sdk import Context

REPROCESS = "reprocess"
# Airflow's own keys in a run's conf.
_AIRFLOWS = "airflow/"
# UUIDs of this version begin with their creation time in milliseconds since 1970 (RFC 9562).
_TIMED_VERSION = 7


@dataclass(frozen=True)
class StageRequest:
    """One task of one run.

    clear_number: how often anything in the run was cleared. clear_count: how often this task was;
    a retry changes neither. reprocess: the run's conf asks to train a trained window again, or its
    timer was cleared, which had skipped the other tasks: none of these counts as cleared. since:
    an instant at which the run already existed; None if Airflow does not say. scheduled: nobody
    asked for the run.
    """

    dag_id: str
    run_id: str
    task_id: str
    window: Window
    clear_number: int
    clear_count: int
    reprocess: bool
    since: datetime | None = None
    scheduled: bool = False

    @property
    def run(self) -> str:
        return run_name(self.dag_id, self.run_id)

    @property
    def asked_by(self) -> str:
        """The pass: the run together with its number of clears."""
        return pass_name(self.run, self.clear_number)

    @property
    def claim(self) -> str:
        """Stays the same for all attempts at this task until it is cleared: see `Claims`."""
        return f"{self.run}/{self.task_id}/{self.clear_count}"

    @property
    def again(self) -> bool:
        """Whether to do the work even if it was done before."""
        return self.reprocess or self.clear_count > 0

    @classmethod
    def of(cls, context: Context, grid: WindowGrid) -> StageRequest:
        """Read Airflow's context.

        Raises:
            UsageError: when the run has no window of the grid, or a conf that is not ours.
        """
        run, instance = context["dag_run"], context["ti"]
        return cls(
            dag_id=run.dag_id,
            run_id=run.run_id,
            task_id=instance.task_id,
            window=window_of(run, grid),
            clear_number=getattr(run, "clear_number", 0) or 0,
            clear_count=_clear_count(instance, context["task"].retries or 0),
            reprocess=reprocess_of(run.conf) or _said_by_timer(run, instance),
            since=_since(run, instance),
            scheduled=run.run_type == "scheduled",
        )


def run_name(dag_id: str, run_id: str) -> str:
    """The name of a run; DAGs with the same schedule have the same run ids."""
    return f"{dag_id}/{run_id}"


def pass_name(run: str, clear_number: int | None) -> str:
    return f"{run}#{clear_number or 0}"


def window_of(run: Any, grid: WindowGrid) -> Window:  # noqa: ANN401 - Airflow has several run types
    """The window that a run processes.

    Raises:
        UsageError: when it has no logical date, or its data interval is not one window.
    """
    if run.logical_date is None or run.data_interval_start is None:
        raise UsageError(
            "this run has no logical date, so it does not belong to a window: trigger it with one "
            "(any time within the window)"
        )
    start, end = run.data_interval_start, run.data_interval_end
    window = grid.at(start)
    if window.span != Interval(start, end):
        raise UsageError(
            f"the run's data interval {start.isoformat()} to {end.isoformat()} is not the window "
            f"{window.key} ({window.start.isoformat()} to {window.end.isoformat()}): it was "
            "created with an interval of its own, or the pipeline had different windows then; "
            "delete the run and start a new one"
        )
    return window


def reprocess_of(conf: Mapping[str, Any] | None) -> bool:
    """Whether a run's conf asks to train a trained window again.

    Raises:
        UsageError: for any other conf than `{"reprocess": true}` or false.
    """
    given = {key: value for key, value in (conf or {}).items() if not key.startswith(_AIRFLOWS)}
    value = given.pop(REPROCESS, False)
    if given:
        unknown = ", ".join(map(repr, sorted(given)))
        raise UsageError(f'unknown conf key {unknown}: a run accepts only {{"{REPROCESS}": true}}')
    if not isinstance(value, bool):
        raise UsageError(f"conf {REPROCESS} is {value!r}: write true or false")
    return value


def _said_by_timer(run: Any, instance: Any) -> bool:  # noqa: ANN401 - as above
    """Whether the timer of a run that was cleared was to have the window trained again."""
    if not getattr(run, "clear_number", 0) or instance.task_id == TIMER:
        return False
    said = instance.xcom_pull(task_ids=TIMER, default=None)
    return isinstance(said, dict) and said.get("again") is True


def _since(run: Any, instance: Any) -> datetime | None:  # noqa: ANN401 - as above
    """The earliest instant at which this run is known to have existed.

    A run may be deleted and created again with the same id, and nothing else distinguishes the two.
    Its task instances are created with it, and an instance's id contains its creation time; a retry
    gives the instance a new id, but then the run's own start is earlier.
    """
    known = [run.start_date] if run.start_date is not None else []
    if isinstance(instance.id, UUID) and instance.id.version == _TIMED_VERSION:
        milliseconds = instance.id.int >> 80
        known.append(from_us(milliseconds * 1000))
    return min(known, default=None)


def _clear_count(instance: Any, retries: int) -> int:  # noqa: ANN401 - Airflow's task instance
    """`max_tries` starts at `retries` and grows with each clear of a task that has run."""
    if instance.try_number <= 1:
        return 0  # it never ran before, whatever `retries` was when the run was created
    return max(0, int(instance.max_tries) - retries)
