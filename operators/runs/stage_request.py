"""What a task of a run is asked for: which window, in which pass, and how often before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forebay.config.windows import Interval, Window, WindowGrid
from forebay.errors import UsageError
from forebay.system.instants import from_us

if TYPE_CHECKING:
    from airflow.sdk import Context

REPROCESS = "reprocess"
# Airflow's own keys in a run's conf.
_AIRFLOWS = "airflow/"
# Of the ids that begin with the milliseconds since 1970 at which they were made (RFC 9562).
_TIMED_VERSION = 7


@dataclass(frozen=True)
class StageRequest:
    """One task of one run.

    clear_number: how often anything in the run was cleared. clear_count: how often this task was;
    a retry leaves both. reprocess: the run's conf asks to do a trained window again. since: an
    instant at which the run was there already; None where Airflow does not say.
    """

    dag_id: str
    run_id: str
    task_id: str
    window: Window
    clear_number: int
    clear_count: int
    reprocess: bool
    since: datetime | None = None

    @property
    def run(self) -> str:
        """The run, among those of all DAGs."""
        return run_name(self.dag_id, self.run_id)

    @property
    def asked_by(self) -> str:
        """The pass: one asking of one run."""
        return pass_name(self.run, self.clear_number)

    @property
    def claim(self) -> str:
        """What stays the same for all attempts at one asking of this task: see `Claims`."""
        return f"{self.run}/{self.task_id}/{self.clear_count}"

    @property
    def again(self) -> bool:
        """Whether the work is to be done even where it was done before."""
        return self.reprocess or self.clear_count > 0

    @classmethod
    def of(cls, context: Context, grid: WindowGrid) -> StageRequest:
        """Read Airflow's context.

        Raises:
            UsageError: for a run without a window of the grid, or with a conf that is not ours.
        """
        run, instance = context["dag_run"], context["ti"]
        return cls(
            dag_id=run.dag_id,
            run_id=run.run_id,
            task_id=instance.task_id,
            window=window_of(run, grid),
            clear_number=getattr(run, "clear_number", 0) or 0,
            clear_count=_clear_count(instance, context["task"].retries or 0),
            reprocess=reprocess_of(run.conf),
            since=_since(run, instance),
        )


def run_name(dag_id: str, run_id: str) -> str:
    """The name of a run; run ids alone are the same in all DAGs of a schedule."""
    return f"{dag_id}/{run_id}"


def pass_name(run: str, clear_number: int | None) -> str:
    """The name of one asking of one run, by the run's name."""
    return f"{run}#{clear_number or 0}"


def window_of(run: Any, grid: WindowGrid) -> Window:  # noqa: ANN401 - Airflow has several run types
    """The window that a run stands for.

    Raises:
        UsageError: without a logical date, or when its data interval is not one window.
    """
    if run.logical_date is None or run.data_interval_start is None:
        raise UsageError(
            "this run has no logical date, so it belongs to no window: trigger it with one (any "
            "time within the window)"
        )
    start, end = run.data_interval_start, run.data_interval_end
    window = grid.at(start)
    if window.span != Interval(start, end):
        raise UsageError(
            f"the run's data interval {start.isoformat()} to {end.isoformat()} is not the window "
            f"{window.key} ({window.start.isoformat()} to {window.end.isoformat()}): the "
            "pipeline had other windows when the run was made; delete the run and start a new one"
        )
    return window


def reprocess_of(conf: Mapping[str, Any] | None) -> bool:
    """Whether a run's conf asks to do a trained window again.

    Raises:
        UsageError: for any other conf than `{"reprocess": true}` or false.
    """
    given = {key: value for key, value in (conf or {}).items() if not key.startswith(_AIRFLOWS)}
    value = given.pop(REPROCESS, False)
    if given:
        unknown = ", ".join(map(repr, sorted(given)))
        raise UsageError(f'unknown conf key {unknown}: a run accepts {{"{REPROCESS}": true}} only')
    if not isinstance(value, bool):
        raise UsageError(f"conf {REPROCESS} is {value!r}: write true or false")
    return value


def _since(run: Any, instance: Any) -> datetime | None:  # noqa: ANN401 - as above
    """The earliest instant at which this run is known to have been there.

    A run may be deleted and made again with the same id, and nothing else tells the two apart. It
    has its tasks' instances from the beginning, and an instance's id says when it was made; after a
    retry it is another one, and then the run's own start is earlier.
    """
    known = [run.start_date] if run.start_date is not None else []
    if isinstance(instance.id, UUID) and instance.id.version == _TIMED_VERSION:
        milliseconds = instance.id.int >> 80
        known.append(from_us(milliseconds * 1000))
    return min(known, default=None)


def _clear_count(instance: Any, retries: int) -> int:  # noqa: ANN401 - Airflow's task instance
    """`max_tries` starts at `retries` and grows with each clear of a task that has run."""
    if instance.try_number <= 1:
        return 0  # it never ran before, whatever `retries` was when the run was made
    return max(0, int(instance.max_tries) - retries)
