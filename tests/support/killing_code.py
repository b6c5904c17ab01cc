"""Code of data executors that dies at a marker in what it reads, as a library's bug would.

Or reads it for ever.
"""

from __future__ import annotations

import json
import os
import signal
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.projects import DAY, FIRST_DAY, Project, Topic, rows_of_day, with_column

MARKER = "kills its reader"
_SECONDS = np.timedelta64(1, "s")

# Python runs it when an interpreter starts, before anything of ours.
_CUSTOMIZE = """
import importlib, json, signal, sys, time
from pathlib import Path

SETTINGS = json.loads(Path(__file__).with_name("settings.json").read_text())
MARKER = SETTINGS["marker"]
MODULES = {"forebay.executors.data_executor", "forebay.executors.poison.trial_reader"}
DEATHS = Path(__file__).with_name("deaths")


def die():
    with DEATHS.open("a") as stream:
        print(sys.orig_argv[sys.orig_argv.index("-m") + 1], file=stream)
    if len(DEATHS.read_text().splitlines()) <= SETTINGS["deaths_max"]:
        if SETTINGS["signal"] == 0:
            exec("while True: pass")
        signal.raise_signal(SETTINGS["signal"])  # this thread goes no step further
        time.sleep(60)


def of_message(real):
    def read(self, value):
        if value is not None and MARKER.encode() in value:
            die()
        return real(self, value)
    return read


def of_batch(real):
    def to_chunk(stored, *arguments):
        if MARKER in stored.batch.column("user").to_pylist():
            die()
        return real(stored, *arguments)
    return to_chunk


def patch(module, name, wrapped):
    owner = importlib.import_module(f"forebay.datatasks.sources.{module}")
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, wrapped(getattr(owner, last)))


if MODULES & set(sys.orig_argv):
    patch("formats.arrow_ipc", "ArrowDecoder._read", of_message)
    patch("parquet.read", "to_chunk", of_batch)
    patch("log.read", "to_chunk", of_batch)
    patch("records.read", "to_chunk", of_batch)
"""


class KillingCode:
    """In the data executors of a project, and in whatever they start."""

    def __init__(
        self, project: Project, folder: Path, number: int = signal.SIGABRT, deaths_max: int = 1_000
    ) -> None:
        """number: the signal that ends a reader; 0 for one that reads for ever.

        deaths_max: later ones live on.
        """
        folder.mkdir()
        self._deaths = folder / "deaths"
        settings = {"marker": MARKER, "signal": number, "deaths_max": deaths_max}
        (folder / "sitecustomize.py").write_text(_CUSTOMIZE)
        (folder / "settings.json").write_text(json.dumps(settings))
        path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        project.environment["PYTHONPATH"] = os.pathsep.join(path)

    def deaths(self) -> tuple[int, int]:
        if not self._deaths.exists():
            return 0, 0
        found = self._deaths.read_text().splitlines()
        trials = sum(module.endswith("trial_reader") for module in found)
        return len(found) - trials, trials


def marked(rows: pa.Table, row: int) -> pa.Table:
    users = rows.column("user").to_pylist()
    users[row] = MARKER
    return with_column(rows, "user", pa.array(users, rows.schema.field("user").type))


def mark_row_group(project: Project, group: int, rows: int) -> tuple[str, int, int]:
    """Row groups of `rows` rows in the first file, one with the marker: path, first row, end."""
    path = project.files / f"date={FIRST_DAY - DAY:%Y-%m-%d}" / "part-0.parquet"
    table = marked(pq.ParquetFile(path).read(), group * rows + 1)
    pq.write_table(table, path, row_group_size=rows)
    end = min((group + 1) * rows, len(table))
    return path.relative_to(project.files).as_posix(), group * rows, end


def mark_segment(project: Project, number: int, partition: int = 0) -> Path:
    path = sorted((project.log / str(partition)).glob("*.arrow"))[number]
    with pa.OSFile(str(path)) as source:
        table = marked(pa.ipc.open_file(source).read_all(), 0)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def publish_marked(topic: Topic, partition: int, at: timedelta) -> None:
    from forebay.datatasks.sources.kafka.producer import publish_batches

    stamp: datetime = FIRST_DAY + at
    batch = marked(rows_of_day(FIRST_DAY, 3, 7), 1)
    publish_batches(topic.bootstrap, topic.name, [(batch, stamp, partition)])
