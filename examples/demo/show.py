"""What the demo does: data, broker, windows, kills, an independent count, reports."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from examples.demo.airflow.through_airflow import ThroughAirflow
from examples.demo.conversions import play_conversions
from examples.demo.count import (
    Stored,
    disagreements,
    kafka_rows,
    log_rows,
    lost_and_repeated,
    parquet_rows,
)
from examples.demo.data.flight_data import prepare
from examples.demo.data.topic import Topic
from examples.demo.direct import Direct
from examples.demo.kills import SCENES, Kills
from examples.demo.mode import Json, say
from examples.demo.next_steps import check_command, score_command
from examples.demo.settings import CONFIG, KAFKA_VARIANT, LAST_WINDOW, PIPELINE, Settings
from examples.demo.signals import undisturbed
from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.kafka.broker import BROKER_ID
from forebay.embedded.layout import Layout
from forebay.errors import InfrastructureError, RowsLostError
from forebay.executors.job.runners import end_runner, runners_of
from forebay.home.database.identity import MARKER_NAME
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.report.facts import read_summary
from forebay.report.html import render_html
from forebay.system.processes.identity import environment_variable, processes_with
from forebay.system.processes.parent import JOB_ID_NAME

END_SECONDS = 10.0
_POLL_SECONDS = 0.1


def require_nobody_left(home: Home, *, airflow: bool) -> None:
    """Check that all processes of jobs have ended, and those of Airflow if it was stopped.

    A broker that the demo started is stopped later.

    Raises:
        InfrastructureError: when one is still running after a few seconds.
    """
    deadline = time.monotonic() + END_SECONDS
    while left := _left(home, airflow=airflow):
        if time.monotonic() > deadline:
            raise InfrastructureError(f"processes that the demo started are still running: {left}")
        time.sleep(_POLL_SECONDS)


def _left(home: Home, *, airflow: bool) -> list[int]:
    root = str(home.root)
    found = {
        one.pid
        for one in processes_with({ENVIRONMENT_NAME: root})
        if environment_variable(one.pid, JOB_ID_NAME) not in {None, BROKER_ID}
    }
    if airflow:
        found |= {one.pid for one in left_processes(Layout(home))}
        found |= {one.pid for one in Embedded(home).status() if one.pid is not None}
    return sorted(found)


# Limit for everything except the time that the user looks at the UI.
ALL_SECONDS = 900.0
_DAY_MICROS = 86_400_000_000


@dataclass
class Demo:
    """One run of the demo. Phases are timed; `environ` is what child processes get."""

    settings: Settings
    environ: dict[str, str]
    phases: dict[str, float] = field(default_factory=dict)

    def play(self) -> None:
        """Run everything from data to report.

        Raises:
            ForebayError: when something fails or figures do not agree.
        """
        started = time.monotonic()
        settings = self.settings
        say(f"demo  {settings.words}; all its files are in {settings.home.root}")
        if settings.kill:
            self._forget_models()
        with self._phase("data"):
            data = settings.folder / "data"
            built, reused = prepare(data, settings.wait, with_log=not settings.kafka)
        say(f"data  {'reused' if reused else 'built'}: {built.words}")
        topic = Topic(settings.home, self.environ, built.content) if settings.kafka else None
        try:
            self._perform(topic, started)
        finally:
            if topic is not None:
                with undisturbed():
                    topic.stop()

    def _perform(self, topic: Topic | None, started: float) -> None:
        settings, config = self.settings, CONFIG
        if topic is not None:
            with self._phase("kafka"):
                say(topic.start(settings.wait))
            config = kafka_config(settings)
        with self._phase("count"):
            stored = self._stored(topic)
        kills = Kills(settings.home, PIPELINE, _expected(stored), say) if settings.kill else None
        way: Direct | ThroughAirflow
        if settings.airflow:
            way = ThroughAirflow(settings, config, self.environ, started + ALL_SECONDS)
        else:
            way = Direct(settings.home, settings.flights, config, self.environ)
        try:
            with self._phase("run"):
                summary = way.train(kills.look if kills else lambda: None)
            with self._phase("check and report"):
                closing = self._conclude(summary, stored, kills)
            with self._phase("conversions"):
                play_conversions(settings, config, self.environ)
            say(f"next  score a row: {score_command(summary['model'])}")
            broken = check_command(settings.folder / "broken")
            say(f"next  see what Forebay says about three mistakes: {broken}")
            way.tell()
            self.phases["in all"] = time.monotonic() - started
            spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.phases.items())
            say(f"time  {spent}")
            if way.stays:
                say(closing)
                way.linger()
        finally:
            with undisturbed():
                way.stop()
        require_nobody_left(settings.home, airflow=way.ends_airflow)
        if not way.stays:
            say(closing)

    def _forget_models(self) -> None:
        """Remove this home's models and runs: kills need something that is being trained."""
        home = self.settings.home
        Embedded(home).stop()
        for name in ("store", "training", "jobs", "locks", "airflow"):
            shutil.rmtree(home.root / name, ignore_errors=True)
        for file in home.root.glob("forebay.db*"):
            file.unlink()
        (home.root / MARKER_NAME).unlink(missing_ok=True)

    def _stored(self, topic: Topic | None) -> dict[str, Stored]:
        """Every stored row by source, read without any of Forebay's code."""
        data = self.settings.folder / "data"
        table = data / "flights_table" / "warehouse" / "flights" / "flights_table"
        return {
            "flights_table": parquet_rows(table, "data"),
            "flights_files": parquet_rows(data / "flights_files"),
            "departures": (
                kafka_rows(topic.bootstrap, topic.name) if topic else log_rows(data / "departures")
            ),
        }

    def _conclude(self, summary: Json, stored: dict[str, Stored], kills: Kills | None) -> str:
        """Check the model's row sums and that no job is left; write the report; return the verdict.

        Raises:
            RowsLostError: when the summary and the stored data differ.
            InfrastructureError: when a process is left, or a kill did not happen.
        """
        wrong = disagreements(summary, stored)
        if wrong:
            raise RowsLostError("\n".join(wrong))
        say("count  an independent count of the stored data matches the model's row sums exactly")
        for place in runners_of(self.settings.home).values():
            end_runner(place)
        require_nobody_left(self.settings.home, airflow=False)
        page = self.settings.summary.with_name("report.html")
        page.write_text(render_html(read_summary(self.settings.summary)))
        say(f"report  {page}")
        say(f"model  {summary['model']}")
        lost, repeated = lost_and_repeated(summary, stored)
        struck = kills.struck if kills else []
        if kills and len(struck) < len(SCENES):
            raise InfrastructureError(
                f"the windows were done before all processes had been killed: {struck}"
            )
        return (f"{len(struck)} kills, " if kills else "") + (
            f"{lost} rows lost, {repeated} repeated (checked in the model)"
        )

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = time.monotonic() - started


def kafka_config(settings: Settings) -> Path:
    """The project's YAML with the stream on Kafka, in its own folder."""
    folder = settings.folder / "config"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("sources", "pipelines"):
        shutil.copytree(CONFIG / part, folder / part)
    shutil.copytree(KAFKA_VARIANT, folder / "sources", dirs_exist_ok=True)
    return folder


def _expected(stored: dict[str, Stored]) -> int:
    """Roughly how many rows all windows train on: all from before the end of the last window."""
    end = np.datetime64(LAST_WINDOW, "us").astype(np.int64) + _DAY_MICROS
    return sum(int(((rows.at < end) & rows.labelled).sum()) for rows in stored.values())
