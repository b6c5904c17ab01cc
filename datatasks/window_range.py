"""The windows that a person asks for by two texts."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Window
from forebay.errors import ConfigError


def requested_windows(pipeline: PipelineSpec, first: str, last: str) -> list[Window]:
    """The windows of a range, inside the dataset's start and end.

    Raises:
        ConfigError: for texts that name no window, or windows outside the dataset.
    """
    dataset = pipeline.dataset
    try:
        windows = dataset.grid.between(first, last)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--from/--to of pipeline {pipeline.name!r}: {error}") from error
    _refuse_outside(pipeline, windows)
    return windows


def requested_window(pipeline: PipelineSpec, key: str) -> Window:
    """The one window of a key, inside the dataset's start and end.

    Raises:
        ConfigError: for a text that names no window, or one outside the dataset.
    """
    try:
        window = pipeline.dataset.grid.parse(key)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"pipeline {pipeline.name!r}: {error}") from error
    _refuse_outside(pipeline, [window])
    return window


def _refuse_outside(pipeline: PipelineSpec, windows: Sequence[Window]) -> None:
    dataset = pipeline.dataset
    begin = dataset.grid.at(dataset.start)  # a window that holds the start may run
    if windows[0].start < begin.start:
        raise ConfigError(
            f"window {windows[0].key} lies before the dataset's start "
            f"({dataset.start:%Y-%m-%dT%H:%M}Z): begin with {begin.key}"
        )
    if dataset.end is not None and windows[-1].start >= dataset.end:
        raise ConfigError(
            f"window {windows[-1].key} lies behind the dataset's end "
            f"({dataset.end:%Y-%m-%dT%H:%M}Z)"
        )
