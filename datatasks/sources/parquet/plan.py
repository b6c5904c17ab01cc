"""Plans Parquet files, and reads the event times of row groups that cross a border."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Literal

import pyarrow.parquet as pq

from forebay.datatasks.sources.common.row_groups.planner import RangePlanner
from forebay.datatasks.sources.common.values.times import Times
from forebay.datatasks.sources.parquet.footers import Opened, group_times, open_parquet


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
        self._opened = opened
        self._path: str | None = None
        self._stack = ExitStack()

    def group_times(self, path: str, group: int, bounds: tuple[int, int] | None) -> Times:
        if self._path != path:
            self.close()
            handle = self._stack.enter_context(self._opened(path))
            self._file: pq.ParquetFile = self._stack.enter_context(open_parquet(handle))
            self._path = path
        return group_times(self._file, group, str(self._event_time), bounds)

    def close(self) -> None:
        self._path = None
        self._stack.close()
