"""WindowTimetable: one run for each window of a pipeline's grid, when the window has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from pendulum import DateTime, instance

from forebay.config.specs.windows import Window, WindowGrid, WindowSize

if TYPE_CHECKING:
    from airflow.utils.types import DagRunType


class WindowTimetable(Timetable):
    """Runs windows of one size. `WindowGrid` alone defines which windows there are.

    A run's data interval is its window, and its logical date the window's start, whether it is
    created by the scheduler or by a backfill (by window start, both ends included). A manual run
    processes the window that contains its logical date.
    """

    def __init__(
        self,
        size: WindowSize | str,
        timezone: str = "UTC",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        """`timezone` defines the days of `1d`; hours are UTC hours.

        start, end: no window that starts outside them is scheduled, in a DAG without dates. Why not
        the DAG's: a manual run outside those has no tasks, and is shown as a success.
        """
        self.grid, self.start, self.end = WindowGrid(WindowSize(size), timezone), start, end
        self.description = (
            "Every hour (UTC), after it has ended"
            if self.grid.size is WindowSize.HOUR
            else f"Every day in {timezone}, after it has ended"
        )

    @property
    def summary(self) -> str:
        """What Airflow's list of DAGs shows: `1h`, `1d` or `1d Europe/Berlin`."""
        if self.grid.size is WindowSize.HOUR or self.grid.zone == "UTC":
            return str(self.grid.size)
        return f"{self.grid.size} {self.grid.zone}"

    def serialize(self) -> dict[str, Any]:
        bounds = [at and at.isoformat() for at in (self.start, self.end)]
        return {"size": str(self.grid.size), "timezone": self.grid.zone, "bounds": bounds}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WindowTimetable:
        bounds = (at and datetime.fromisoformat(at) for at in data.get("bounds", ()))
        return cls(data["size"], data["timezone"], *bounds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowTimetable) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return hash(self.grid)

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """The window that contains the instant: in an hourly pipeline 10:37 means 10 to 11."""
        try:
            return _interval(self.grid.at(run_after))
        except OverflowError as error:  # Airflow answers 400 to a ValueError
            raise ValueError(f"no window ends after {run_after}, as calendars end there") from error

    def generate_run_id(
        self,
        *,
        run_type: DagRunType,
        run_after: DateTime,
        data_interval: DataInterval | None,
        **extra: Any,
    ) -> str:
        """Names the window: Airflow's own names only the time after it, a day later."""
        if data_interval is None:
            return super().generate_run_id(
                run_type=run_type, run_after=run_after, data_interval=None, **extra
            )
        suffix = f"{self.grid.at(data_interval.start).key}_{run_after.isoformat()}"
        return run_type.generate_run_id(suffix=suffix)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The window after the last one; without catchup not before the newest closed window."""
        # A backfill brings both, so that its windows outside our own are not left out silently.
        start, end = restriction.earliest or self.start, restriction.latest or self.end
        earliest = [] if start is None else [self._from(start)]
        if not restriction.catchup:
            earliest.append(self.grid.before(self.grid.at(datetime.now(UTC))))
        if last_automated_data_interval is not None:
            # The end may not be on this grid, if the window size has changed since that run.
            earliest.append(self._from(last_automated_data_interval.end))
        elif start is None:
            return None
        window = max(earliest)
        if end is not None and window.start > end:
            return None
        return DagRunInfo.interval(*_interval(window))

    def _from(self, instant: datetime) -> Window:
        """The first window that starts at the instant or later."""
        window = self.grid.at(instant)
        return window if window.start == instant else self.grid.after(window)


def _interval(window: Window) -> DataInterval:
    return DataInterval(instance(window.start), instance(window.end))
