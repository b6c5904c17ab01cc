"""Plans Parquet files, and reads the event times of row groups that cross a border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from forebay.datatasks.sources.common.row_groups.planner import RangePlanner
from forebay.datatasks.sources.common.values.times import Times
from forebay.datatasks.sources.parquet.footers import Opened, group_times
from forebay.datatasks.sources.parquet.open_files import LastFile


class ParquetPlanner(RangePlanner):
    """opened: opens a relative path for Arrow. The file that was wanted last stays open."""

    def __init__(
        self,
        opened: Opened,
        event_time: str | None,
        policy: Literal["fail", "dead_letter"],
        place: Callable[[str], str],
    ) -> None:
        super().__init__(event_time, policy, place)
        self._last = LastFile(opened)

    def group_times(self, path: str, group: int, bounds: tuple[int, int] | None) -> Times:
        return group_times(self._last.open(path, "").file, group, str(self._event_time), bounds)

    def close(self) -> None:
        self._last.close()
