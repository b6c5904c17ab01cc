"""Where workers find state and interpreters: environment, then Airflow's section [forebay]."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from airflow.sdk.configuration import conf

from forebay.errors import ConfigError
from forebay.home.database.format import require_format
from forebay.home.paths import ENVIRONMENT_NAME, Home

SECTION = "forebay"


def home() -> Home:
    """FOREBAY_HOME, or Airflow's option `[forebay] home`.

    Raises:
        ConfigError: when neither is set, or when it is not an absolute path: the components of
            Airflow have their own working folders, but must all use the same home; or when its
            state was written by another version.
    """
    told = os.environ.get(ENVIRONMENT_NAME) or conf.get(SECTION, "home", fallback="")
    if not told:
        raise ConfigError(
            f"Airflow is not told where Forebay's state is: set {ENVIRONMENT_NAME} for every "
            "component of Airflow, or [forebay] home in airflow.cfg"
        )
    if not Path(told).is_absolute():
        raise ConfigError(
            f"Forebay's state is in {told!r}, which is a different folder for each component of "
            f"Airflow: write an absolute path into {ENVIRONMENT_NAME} or [forebay] home"
        )
    found = Home(Path(told))
    require_format(found)
    return found


def interpreter(declared: str | None) -> str:
    """The interpreter of stages: the pipeline's, Airflow's option `[forebay] python`, or ours."""
    return declared or conf.get(SECTION, "python", fallback="") or sys.executable
