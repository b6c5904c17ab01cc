"""Settings of `make demo` from the environment: AIRFLOW, STREAM, KILL, WAIT and LIVE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from forebay.config.specs.base import format_duration, parse_duration
from forebay.errors import UsageError
from forebay.home.paths import DEFAULT_HOME, ENVIRONMENT_NAME, Home

USUAL_WAIT = timedelta(hours=9)
PIPELINE, CONVERSIONS = "flights", "conversions"
FIRST_WINDOW, LAST_WINDOW = "2013-06-01", "2013-06-07"
FIRST_HOUR, LAST_HOUR = "2026-03-07T00", "2026-03-08T23"
CONFIG = Path("config")
KAFKA_VARIANT = CONFIG / "variants" / "kafka"


class Windows(NamedTuple):
    """Windows of one pipeline that the demo trains, and where their summary is written."""

    pipeline: str
    first: str
    last: str
    summary: Path


@dataclass(frozen=True)
class Settings:
    """One way to run the demo. Each has its own home, so that their models do not mix.

    With and without Airflow the home is the same: each finds what the other has trained.
    """

    airflow: bool
    kafka: bool
    kill: bool
    wait: timedelta
    home: Home
    live: bool = False

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables; empty ones count as not set.

        Raises:
            UsageError: when a value is not valid.
        """
        stream = environ.get("STREAM") or "log"
        if stream not in {"log", "kafka"}:
            raise UsageError(f"STREAM={stream}: write `log` or `kafka`")
        airflow, kill = _switch(environ, "AIRFLOW", "1"), _switch(environ, "KILL", "0")
        live = _switch(environ, "LIVE", "0")
        try:
            wait = parse_duration(environ.get("WAIT") or USUAL_WAIT)
        except ValueError as error:
            raise UsageError(f"WAIT={environ['WAIT']}: {error}") from None
        name = environ.get(ENVIRONMENT_NAME) or DEFAULT_HOME
        name += "-live" * live + "-kafka" * (stream == "kafka") + "-kill" * kill
        name += f"-wait-{format_duration(wait)}" * (wait != USUAL_WAIT)
        return cls(airflow, stream == "kafka", kill, wait, Home(Path(name).absolute()), live)

    @property
    def folder(self) -> Path:
        return self.home.root / "demo"

    @property
    def summary(self) -> Path:
        return self.folder / "summary.json"

    @property
    def flights(self) -> Windows:
        return Windows(PIPELINE, FIRST_WINDOW, LAST_WINDOW, self.summary)

    @property
    def conversions(self) -> Windows:
        """The hours of the generated market: half of them have complete labels at the end."""
        return Windows(CONVERSIONS, FIRST_HOUR, LAST_HOUR, self.folder / "conversions.json")

    @property
    def words(self) -> str:
        stream = "Kafka" if self.kafka else "a log directory"
        killing = ", three kills on the way" if self.kill else ""
        way = "windows run by Airflow" if self.airflow else "windows run by `forebay run`"
        known = f"{format_duration(self.wait)} after departure"
        return f"{way}, stream from {stream}, {known}{killing}"


def _switch(environ: Mapping[str, str], name: str, usual: str) -> bool:
    value = environ.get(name) or usual
    if value not in {"0", "1"}:
        other = "1" if usual == "0" else "0"
        raise UsageError(f"{name}={value}: write {name}={other}, or leave it out")
    return value == "1"
