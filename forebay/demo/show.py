"""What the demo plays: data, broker, `forebay run`, kills, a count of its own, the report."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from forebay.demo.count import (
    Stored,
    disagreements,
    kafka_rows,
    log_rows,
    lost_and_repeated,
    parquet_rows,
)
from forebay.demo.data import prepare
from forebay.demo.kills import SCENES, Kills
from forebay.demo.settings import (
    CONFIG,
    FIRST_WINDOW,
    KAFKA_VARIANT,
    LAST_WINDOW,
    PIPELINE,
    Settings,
)
from forebay.demo.topic import Topic
from forebay.errors import InfrastructureError, RowsLostError
from forebay.executors.job import attach
from forebay.executors.process import processes_of_job
from forebay.report.facts import facts_of
from forebay.report.html import render_html

EXAMPLE_ROW = {
    "carrier": "UA",
    "tailnum": "N14228",
    "flight": 1545,
    "origin": "EWR",
    "dest": "IAH",
    "sched_dep": "2013-06-15T17:30:00Z",
    "distance": 1400,
}
_POLL_SECONDS = 0.1
_END_SECONDS = 10.0
_DAY_MICROS = 86_400_000_000


@dataclass
class Demo:
    """One performance. Phases are timed; `environ` is what child processes get."""

    settings: Settings
    environ: dict[str, str]
    phases: dict[str, float] = field(default_factory=dict)

    def play(self) -> int:
        """Everything from data to report; the exit code."""
        started = time.monotonic()
        settings = self.settings
        say(f"demo  {settings.words}; everything it keeps lies in {settings.home.root}")
        if settings.kill:
            self._forget_models()
        with self._phase("data"):
            built, reused = prepare(settings.data, settings.wait, with_log=not settings.kafka)
        say(f"data  {'reused' if reused else 'built'}: {built.words}")
        topic = Topic(settings.home, self.environ, built.content) if settings.kafka else None
        try:
            code, closing = self._perform(topic)
        finally:
            if topic is not None:
                topic.stop()
        self.phases["in all"] = time.monotonic() - started
        say("time  " + ", ".join(f"{name} {spent:.1f} s" for name, spent in self.phases.items()))
        say(closing)
        return code

    def _perform(self, topic: Topic | None) -> tuple[int, str]:
        """The exit code and the last line."""
        config = CONFIG
        if topic is not None:
            with self._phase("kafka"):
                say(topic.start(self.settings.wait))
            config = kafka_config(self.settings)
        with self._phase("count"):
            stored = self._stored(topic)
        kills = Kills(_expected(stored), say) if self.settings.kill else None
        with self._phase("run"):
            code = self._run(config, kills)
        if code != 0:
            return code, f"forebay run ended with exit code {code}"
        with self._phase("check and report"):
            return 0, self._conclude(stored, kills)

    def _forget_models(self) -> None:
        """Killing needs something to train, so this home's models do not stay."""
        for name in ("ledger", "models", "jobs", "published", "dead"):
            shutil.rmtree(self.settings.home.root / name, ignore_errors=True)

    def _stored(self, topic: Topic | None) -> dict[str, Stored]:
        """Every stored row by source, read without a line of Forebay."""
        data = self.settings.data
        table = data / "flights_table" / "warehouse" / "flights" / "flights_table"
        return {
            "flights_table": parquet_rows(table, "data"),
            "flights_files": parquet_rows(data / "flights_files"),
            "departures": (
                kafka_rows(topic.bootstrap, topic.name) if topic else log_rows(data / "departures")
            ),
        }

    def _run(self, config: Path, kills: Kills | None) -> int:
        """`forebay run` as a user types it; its output is the user's."""
        self.settings.summary.unlink(missing_ok=True)
        arguments = ["run", PIPELINE, "--from", FIRST_WINDOW, "--to", LAST_WINDOW]
        arguments += ["--config", str(config), "--summary", str(self.settings.summary)]
        say(f"$ forebay {shlex.join(arguments)}")
        command = [sys.executable, "-P", "-m", "forebay.cli", *arguments]
        with subprocess.Popen(command, env=self.environ) as process:
            try:
                while process.poll() is None:
                    time.sleep(_POLL_SECONDS)
                    if kills is not None and (job := self._job()) is not None:
                        kills.look(job)
            except BaseException:
                process.terminate()
                self._cancel()
                raise
        return process.returncode

    def _job(self) -> Path | None:
        jobs = self.settings.home.root.glob(f"jobs/{PIPELINE}-*")
        return max(jobs, key=lambda path: path.stat().st_mtime, default=None)

    def _cancel(self) -> None:
        """The job does not depend on whoever submitted it, so an interrupt has to end it."""
        job = self._job()
        if job is not None:
            attach(self.settings.home, job.name).cancel()

    def _conclude(self, stored: dict[str, Stored], kills: Kills | None) -> str:
        """Check the model's own row sums and that nobody is left; write the report.

        Returns:
            The last line: what the check came to.

        Raises:
            RowsLostError: when the summary and the stored data differ.
            InfrastructureError: when a process is left, or a kill did not happen.
        """
        summary = json.loads(self.settings.summary.read_text())
        wrong = disagreements(summary, stored)
        if wrong:
            raise RowsLostError("\n".join(wrong))
        say("count  an independent count of the stored data gives the model's row sums exactly")
        self._nobody_left()
        page = self.settings.summary.with_name("report.html")
        page.write_text(render_html(facts_of(summary)))
        say(f"report  {page}")
        say(f"model  {summary['model']}")
        program = str(Path(sys.executable).with_name("forebay"))
        score = [program, "score", summary["model"], "--row", json.dumps(EXAMPLE_ROW)]
        say(f"score a row  {shlex.join(score)}")
        lost, repeated = lost_and_repeated(summary, stored)
        struck = kills.struck if kills else []
        if kills and len(struck) < len(SCENES):
            raise InfrastructureError(f"the job ended before all kills: {struck}")
        return (f"{len(struck)} kills, " if kills else "") + (
            f"{lost} rows lost, {repeated} repeated (checked in the model)"
        )

    def _nobody_left(self) -> None:
        job = self._job()
        if job is None:
            return
        deadline = time.monotonic() + _END_SECONDS
        while left := processes_of_job(job.name, self.settings.home.root):
            if time.monotonic() > deadline:
                raise InfrastructureError(f"processes of the job are left: {left}")
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = time.monotonic() - started


def say(text: str) -> None:
    """A line of the demo's own, at once, also between the lines of the run."""
    sys.stdout.write(f"\r\x1b[2K{text}\n" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()


def kafka_config(settings: Settings) -> Path:
    """The project's YAML with the stream on Kafka, in a folder of its own."""
    folder = settings.folder / "config"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("sources", "pipelines"):
        (folder / part).mkdir(parents=True)
        for file in (CONFIG / part).glob("*.yaml"):
            shutil.copy(file, folder / part / file.name)
    for file in KAFKA_VARIANT.glob("*.yaml"):
        shutil.copy(file, folder / "sources" / file.name)
    return folder


def _expected(stored: dict[str, Stored]) -> int:
    """About how many rows the whole job trains: all that happened before the last window's end."""
    end = np.datetime64(LAST_WINDOW, "us").astype(np.int64) + _DAY_MICROS
    return sum(int(((rows.at < end) & rows.labelled).sum()) for rows in stored.values())
