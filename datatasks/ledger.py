"""The ledger: which tasks a window has, in immutable generations, and which of them were trained.

`<window>/g<generation>/<stream>.arrow` holds the tasks of one stream, `plan.json` beside them the
plan that they belong to and their checksums; `trained.json` appears once a model is sealed. A
generation becomes visible by one rename, so nobody ever reads half of one. `log.jsonl` is history
for people: nothing is decided by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from forebay.config.windows import Interval
from forebay.datatasks.plans import WindowPlan
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.datatasks.tasks import DataTask
from forebay.errors import DataError, FencedError, InfrastructureError
from forebay.home.format import record_format
from forebay.home.paths import Home
from forebay.system.files import append_lines, file_digest, read_lines, write_atomically
from forebay.system.message import Message
from forebay.system.trees import TreeExistsError, new_tree, remove_tree

PLAN, TRAINED, LOG = "plan.json", "trained.json", "log.jsonl"
MANIFEST_SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string()),
        pa.field("source", pa.string()),
        *(field for field in TASK_SCHEMA if field.name != "span"),
    ]
)


class _PlanFile(Message):
    plan: WindowPlan
    checksums: dict[str, str]
    plan_checksum: str


class Ledger:
    """Plans and window states of one pipeline."""

    def __init__(self, home: Home, pipeline: str) -> None:
        """Nothing is read or created yet."""
        self.home = home
        self.folder = home.ledger(pipeline)
        self._models = home.line(pipeline).parent
        self._dead_letters = home.dead_letters(pipeline)

    def windows(self) -> list[str]:
        """Keys of all windows that have a generation, in order."""
        if not self.folder.is_dir():
            return []
        names = (path.name for path in self.folder.iterdir() if path.is_dir())
        return sorted(name for name in names if not name.startswith(".") and self._numbers(name))

    def generations(self, window: str) -> list[int]:
        """Numbers of the whole generations of a window, ascending."""
        return [number for number in self._numbers(window) if self._read(window, number)]

    def next_generation(self, window: str) -> int:
        """A number that no generation of the window has had.

        Damaged ones count, and those of a forgotten window that left models or dead letters: what
        is trained anew must not pass for what was trained before.
        """
        left = [*self._models.glob(f"*/{window}/g*"), *self._dead_letters.glob(f"{window}/g*")]
        numbers = [int(path.name[1:]) for path in left if path.name[1:].isdigit()]
        return max([*self._numbers(window), *numbers], default=0) + 1

    def latest_plan(self, window: str) -> WindowPlan | None:
        """The newest whole generation."""
        for number in reversed(self._numbers(window)):
            found = self._read(window, number)
            if found is not None:
                return found.plan
        return None

    def plan(self, window: str, generation: int) -> WindowPlan:
        """One generation.

        Raises:
            DataError: when it is not there or damaged.
        """
        found = self._read(window, generation)
        if found is None:
            raise DataError(
                f"{self._at(window, generation)} is missing or damaged: "
                f"remove {self.folder / window} and run again"
            )
        return found.plan

    def tasks(self, window: str, generation: int) -> pa.Table:
        """The tasks of all sources, ordered by (hour, source order, number)."""
        plan = self.plan(window, generation)
        streams = dict.fromkeys(source.stream for source in plan.sources.values())
        folder = self._at(window, generation)
        tables = [_read_table(folder / _file_name(stream)) for stream in streams]
        table = pa.concat_tables([MANIFEST_SCHEMA.empty_table(), *tables]).combine_chunks()
        names = pa.array(list(plan.sources), pa.string())
        order = np.asarray(pc.index_in(table["source"], names))
        hours = np.asarray(table["hour"])
        if len(tables) > 1 or (np.diff(hours) < 0).any():
            table = table.take(pa.array(np.lexsort((np.arange(len(hours)), order, hours))))
        return table

    @staticmethod
    def data_task(table: pa.Table, row: int, plan: WindowPlan) -> DataTask:
        """One task of `tasks` as an object."""
        values = table.slice(row, 1).to_pylist()[0]
        source = plan.sources[values["source"]]
        span = Interval(source.data_from, source.data_to)
        return DataTask.of_row(
            values,
            values["task_id"],
            source.source,
            plan.window,
            span,
            generation=plan.generation,
            hour_base=source.hour_base,
        )

    def record_plan(self, plan: WindowPlan, tables: Mapping[str, pa.Table]) -> None:
        """Store a generation as a whole.

        Args:
            plan: the figures of the tables.
            tables: by stream; MANIFEST_SCHEMA, or TASK_SCHEMA's columns without `span` and with
                `task_id` and `source`, in any column order.

        Raises:
            FencedError: when another process stored this generation in the meantime.
        """
        self._store(plan, lambda folder: _write_tables(folder, tables))

    def replan(self, window: str) -> WindowPlan:
        """Record the newest plan's tasks once more, under the next generation. Reads no storage.

        Raises:
            DataError: when the window has no plan.
            FencedError: when another process stored that generation in the meantime.
        """
        newest = self.latest_plan(window)
        if newest is None:
            raise DataError(f"window {window} has no plan in {self.folder}: plan it first")
        source = self._at(window, newest.generation)
        plan = newest.model_copy(update={"generation": self.next_generation(window)})
        self._store(plan, lambda folder: _copy_tables(source, folder))
        return plan

    def _store(self, plan: WindowPlan, fill: Callable[[Path], dict[str, str]]) -> None:
        """Store what `fill` writes into a folder and gives checksums of, as one generation."""
        record_format(self.home)
        try:
            with new_tree(self._at(plan.window, plan.generation)) as folder:
                document = _PlanFile(plan=plan, checksums=fill(folder), plan_checksum=_digest(plan))
                (folder / PLAN).write_text(document.model_dump_json(indent=1))
        except TreeExistsError as error:
            raise FencedError(
                f"another process planned window {plan.window} at the same time"
            ) from error
        self.note(plan.window, "planned", generation=plan.generation, fingerprint=plan.fingerprint)

    def mark_trained(self, window: str, generation: int, facts: Mapping[str, Any]) -> None:
        """Say that the model of a generation is sealed."""
        folder = self._at(window, generation)
        if not folder.is_dir():
            raise InfrastructureError(f"{folder} is gone: the window was forgotten meanwhile")
        document = {"window": window, "generation": generation, **facts}
        write_atomically(folder / TRAINED, json.dumps(document, indent=1, default=str))
        self.note(window, "trained", generation=generation)

    def trained(self, window: str) -> int | None:
        """The newest generation whose model is sealed."""
        marked = (
            number
            for number in reversed(self._numbers(window))
            if (self._at(window, number) / TRAINED).is_file()
        )
        return next((number for number in marked if self._read(window, number)), None)

    def forget(self, window: str) -> bool:
        """Remove a window: it will be planned and trained again. False when it is not there."""
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        # By name: a path that leads out of the ledger is none of its windows.
        known = {path.name for path in folders if path.is_dir() and not path.name.startswith(".")}
        if window not in known:
            return False
        remove_tree(self.folder / window)
        self.note(window, "forgotten")
        return True

    def note(self, window: str, event: str, **facts: Any) -> None:
        """Append a line to the history."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"at": at, "window": window, "event": event, **facts}
        record_format(self.home)
        append_lines(self.folder / LOG, json.dumps(entry, default=str) + "\n")

    def history(self, window: str | None = None) -> list[dict[str, Any]]:
        """Lines of the log, oldest first; torn lines are left out."""
        entries: list[dict[str, Any]] = []
        for line in read_lines(self.folder / LOG):
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the tail of a process that died while it wrote
            if isinstance(entry, dict) and window in {None, entry.get("window")}:
                entries.append(entry)
        return entries

    def _at(self, window: str, generation: int) -> Path:
        return self.folder / window / f"g{generation}"

    def _numbers(self, window: str) -> list[int]:
        folder = self.folder / window
        if not folder.is_dir():
            return []
        names = (path.name for path in folder.iterdir())
        return sorted(int(name[1:]) for name in names if name[:1] == "g" and name[1:].isdigit())

    def _read(self, window: str, generation: int) -> _PlanFile | None:
        """A generation whose files are all there and hold what was written."""
        folder = self._at(window, generation)
        try:
            found = _PlanFile.model_validate_json((folder / PLAN).read_bytes())
            whole = found.plan_checksum == _digest(found.plan) and all(
                file_digest(folder / name) == digest for name, digest in found.checksums.items()
            )
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None
        return found if whole else None


def _digest(plan: WindowPlan) -> str:
    return hashlib.sha256(plan.model_dump_json().encode()).hexdigest()


def with_ids(tasks: pa.Table, source: str) -> pa.Table:
    """Tasks of one source (TASK_SCHEMA without or with span) as rows of a manifest, numbered."""
    numbers = pa.array(np.arange(tasks.num_rows)).cast(pa.string())
    ids = pc.binary_join_element_wise(pa.scalar(source), numbers, "/")
    columns = {
        "task_id": ids,
        "source": pa.repeat(pa.scalar(source), tasks.num_rows),
        **{name: tasks[name] for name in MANIFEST_SCHEMA.names if name in tasks.column_names},
    }
    return pa.table(columns, schema=MANIFEST_SCHEMA)


def _write_tables(folder: Path, tables: Mapping[str, pa.Table]) -> dict[str, str]:
    checksums = {}
    for stream, table in tables.items():
        path = folder / _file_name(stream)
        manifest = table.select(MANIFEST_SCHEMA.names).cast(MANIFEST_SCHEMA)
        with path.open("wb") as handle, pa.ipc.new_file(handle, MANIFEST_SCHEMA) as writer:
            writer.write_table(manifest, max_chunksize=1 << 17)
        checksums[path.name] = file_digest(path)
    return checksums


def _copy_tables(source: Path, folder: Path) -> dict[str, str]:
    """Manifests never change, but each generation has files of its own to be damaged or removed."""
    checksums = {}
    for path in sorted(source.glob("*.arrow")):
        (folder / path.name).write_bytes(path.read_bytes())
        checksums[path.name] = file_digest(folder / path.name)
    return checksums


def _read_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as handle:
        return pa.ipc.open_file(handle).read_all()


def _file_name(stream: str) -> str:
    return quote(stream, safe="") + ".arrow"
