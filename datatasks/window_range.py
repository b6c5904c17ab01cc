"""Windows that a person names: one by its key, or a range by its ends (`--from`, `--to`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import (
    WARM_START_SEPARATOR,
    Window,
    WindowSize,
    is_warm_start,
    warm_start_window,
)
from forebay.errors import ConfigError, NotReadyError, UsageError
from forebay.system.clock import utc_now

YESTERDAY = "yesterday"
_MOMENT = timedelta(microseconds=1)


def asked_range(
    pipeline: PipelineSpec, first: str, last: str, due_from: datetime | None, now: datetime
) -> list[Window]:
    """The windows that a person asks for: as `parse_range`, or what is due.

    Without `last` they end with the newest window that has ended. Without `first` too they begin
    at `due_from`, or, where that is None, at the dataset's start; where nothing is due yet, that is
    the window before.

    Raises:
        NotReadyError: when no window, or not even the first, has ended yet.
        UsageError: for `last` without `first`.
        ConfigError: as `parse_range`.
    """
    if last and not first:
        raise UsageError("--to needs --from: write both, or neither for all that is due")
    if last:
        return parse_range(pipeline, first, last, now)
    grid, dataset = pipeline.dataset.grid, pipeline.dataset
    newest = grid.before(grid.at(now))
    if dataset.end is not None and newest.start >= dataset.end:
        newest = grid.at(dataset.end - _MOMENT)
    begin = grid.at(due_from or dataset.start)
    if due_from is not None and not first and begin.start > newest.start:
        return [grid.at(due_from - _MOMENT)]
    if newest.end <= dataset.start:
        raise NotReadyError(
            f"no window of pipeline {pipeline.name!r} has ended yet: the first, {begin.key}, ends "
            f"at {begin.end:%Y-%m-%dT%H:%M}Z"
        )
    if first:
        begin = _between(pipeline, first, first, now)[0]
        _require_inside(pipeline, [begin])
        if begin.start > newest.start:
            raise NotReadyError(
                f"window {begin.key} of pipeline {pipeline.name!r} has not ended yet: it ends at "
                f"{begin.end:%Y-%m-%dT%H:%M}Z"
            )
    return parse_range(pipeline, first or begin.key, newest.key, now)


def parse_range(
    pipeline: PipelineSpec, first: str, last: str, now: datetime | None = None
) -> list[Window]:
    """The windows from `first` to `last`, both included and inside the dataset's start and end.

    Each is the key of a window, a day, or `yesterday` (of `now`, by default of this moment).

    Raises:
        UsageError: when an end is not given.
        ConfigError: for texts that name no window, or windows outside the dataset.
    """
    if not first or not last:
        raise UsageError("a range of windows needs both ends: write both --from and --to")
    windows = _between(pipeline, first, last, now or utc_now())
    _require_inside(pipeline, windows)
    return windows


def _between(pipeline: PipelineSpec, first: str, last: str, now: datetime) -> list[Window]:
    zone = "UTC" if pipeline.dataset.window is WindowSize.HOUR else pipeline.dataset.timezone
    today = now.astimezone(ZoneInfo(zone)).date()
    day = (today - timedelta(days=1)).isoformat()
    first, last = (day if each == YESTERDAY else each for each in (first, last))
    try:
        return pipeline.dataset.grid.between(first, last)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--from/--to of pipeline {pipeline.name!r}: {error}") from error


def parse_window(pipeline: PipelineSpec, key: str) -> Window:
    """The window of a key, inside the dataset's start and end.

    Raises:
        ConfigError: for a text that names no window, or one outside the dataset.
    """
    window = _parse(pipeline, key)
    _require_inside(pipeline, [window])
    return window


def parse_window_or_warm_start(pipeline: PipelineSpec, key: str) -> Window:
    """The window of a key, which may be that of a warm start: `2026-02-01_2026-03-01`.

    Raises:
        ConfigError: as `parse_window`.
    """
    if not is_warm_start(key):
        return parse_window(pipeline, key)
    start, _, first = key.partition(WARM_START_SEPARATOR)
    try:
        begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    except ValueError as error:
        raise ConfigError(f"pipeline {pipeline.name!r}: {error}") from error
    return warm_start_window(pipeline.train.warm_start or begin, _parse(pipeline, first))


def _parse(pipeline: PipelineSpec, key: str) -> Window:
    try:
        return pipeline.dataset.grid.parse(key)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"pipeline {pipeline.name!r}: {error}") from error


def _require_inside(pipeline: PipelineSpec, windows: Sequence[Window]) -> None:
    dataset = pipeline.dataset
    begin = dataset.grid.at(dataset.start)  # a window that holds the start may run
    if windows[0].start < begin.start:
        raise ConfigError(
            f"window {windows[0].key} is before the dataset's start "
            f"({dataset.start:%Y-%m-%dT%H:%M}Z): begin with {begin.key}"
        )
    if dataset.end is not None and windows[-1].start >= dataset.end:
        last = dataset.grid.at(dataset.end - _MOMENT)
        raise ConfigError(
            f"window {windows[-1].key} is after the dataset's end "
            f"({dataset.end:%Y-%m-%dT%H:%M}Z): the last window is {last.key}"
        )
