"""Planes by their names: entry points of `forebay.planes`, ours among them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from forebay.config.specs.jobs import PLANES
from forebay.errors import ConfigError
from forebay.executors.planes.base import MakePlane, Plane


def make_plane(name: str, job: str) -> Plane:
    """The plane of a job. job: see `MakePlane`.

    Raises:
        ConfigError: when none of this name is installed here, as may be where the job is not
            submitted, or it cannot be imported.
    """
    found = {point.name: point for point in entry_points(group=PLANES)}
    if name not in found:
        raise ConfigError(f"job.plane: {name!r} is not installed here, but {', '.join(found)}")
    try:
        make = cast("MakePlane", found[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"job.plane: {name!r} ({found[name].value}) cannot be imported: {error}; reinstall or "
            "upgrade the package that provides it"
        ) from error
    return make(job)
