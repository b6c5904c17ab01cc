"""Planes by their names: entry points of `forebay.planes`, ours among them."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from forebay.config.specs.jobs import PLANES
from forebay.errors import ConfigError
from forebay.executors.planes.base import MakePlane, Plane


def make_plane(name: str, job_dir: Path) -> Plane:
    """The plane of a job.

    Raises:
        ConfigError: when none of this name is installed here, as may be where the job is not
            submitted.
    """
    found = {point.name: point for point in entry_points(group=PLANES)}
    if name not in found:
        raise ConfigError(f"job.plane: {name!r} is not installed here, but {', '.join(found)}")
    return cast("MakePlane", found[name].load())(job_dir)
