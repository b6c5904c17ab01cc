"""The tables of the database: every small fact that Forebay keeps.

`docs/internals/home.md` explains them. Instants are microseconds since 1970 in UTC. A `document` is
the JSON of a message. Nothing refers to bytes that are not stored yet: the row that names them
comes second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    CursorResult,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem

# The tables' schema on a PostgreSQL server. Its connections add it to statements: SQLite takes half
# the time for statements that name no schema.
SCHEMA = "forebay"
IN_SCHEMA = {None: SCHEMA}
# Of a home: of these tables, and of what else is stored. Raised with every change of them.
FORMAT = "10"

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _table(name: str, *parts: SchemaItem) -> Table:
    return Table(name, METADATA, *parts)


def _numbered_table(name: str, *parts: SchemaItem) -> Table:
    # SQLite numbers rows by itself only in a column of exactly this type.
    number = BigInteger().with_variant(Integer, "sqlite")
    return _table(name, Column("id", number, primary_key=True), *parts)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _stored() -> tuple[Column[str], Column[str], Column[int]]:
    """Which bytes of the store belong to a row."""
    return _text("name"), _text("checksum"), _number("size_bytes")


def _window_id(*, primary_key: bool = False) -> Column[int]:
    return Column("window_id", ForeignKey("windows.id"), nullable=False, primary_key=primary_key)


# One row: which home this is.
home = _table("home", Column("id", Text, primary_key=True), _number("made_at"))
# One row: the format. It is read before all other tables, so it stays as it is.
version = _table("forebay_version", Column("version_num", Text, primary_key=True))

# A window that was planned at least once. Its row stays when it is forgotten, so that its
# generations are not used again, and its logs are known by their last segments.
windows = _numbered_table(
    "windows",
    _text("pipeline"),
    _text("key"),
    _number("starts_at"),
    _number("ends_at"),
    _number("last_generation"),
    _text("last_segments"),
    UniqueConstraint("pipeline", "key"),
    Index(None, "pipeline", "ends_at", "starts_at"),
)
plans = _numbered_table(
    "plans",
    _window_id(),
    _number("generation"),
    # The model line that asked for it.
    _text("line"),
    _text("fingerprint"),
    _text("document"),
    # Whether it is to replace a trained generation, and no job that trains it was submitted yet.
    Column("proposed", Boolean, nullable=False),
    _number("planned_at"),
    UniqueConstraint("window_id", "generation"),
)
# Up to which generation a line has forgotten a window: it plans and trains it again.
forgotten = _table(
    "forgotten",
    Column("line", Text, primary_key=True),
    _window_id(primary_key=True),
    _number("generation"),
)
# Tasks of one stream of a plan: an Arrow file in the store.
manifests = _table(
    "manifests",
    Column("plan_id", ForeignKey("plans.id"), primary_key=True),
    Column("stream", Text, primary_key=True),
    *_stored(),
)
# What a source has added to the plan of an open window, which has no manifests before it is closed.
slices = _table(
    "slices",
    Column("plan_id", ForeignKey("plans.id"), primary_key=True),
    # The name of its use.
    Column("source", Text, primary_key=True),
    # The slice of the window that went on when it was added.
    Column("number", BigInteger, primary_key=True),
    # Of a stream: up to where its rows are the window's so far.
    _number("until"),
    _text("document"),
    # An Arrow file.
    Column("tasks", LargeBinary, nullable=False),
)
# The newest answer of a source for a window, until the sink makes it part of a plan.
listings = _table(
    "listings",
    Column("pipeline", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    _text("asked_by"),
    _text("document"),
    _number("stored_at"),
    *_stored(),
)
# Where windows of a stream end and begin: decided once, for all later plans too.
borders = _table(
    "borders",
    Column("pipeline", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Text, primary_key=True),
    Column("instant", BigInteger, primary_key=True),
    _number("offset"),
    _number("decided_at"),
)
# When a pass first asked for a window of a source.
passes = _numbered_table(
    "passes",
    _text("pipeline"),
    _text("source"),
    _text("window"),
    _text("asked_by"),
    _number("asked_at"),
    UniqueConstraint("pipeline", "source", "window", "asked_by"),
)
# Which generation was decided for a request of a run.
requests = _numbered_table(
    "requests",
    _window_id(),
    _text("tag"),
    _number("generation"),
    _number("decided_at"),
    UniqueConstraint("window_id", "tag"),
)
# History for people: no decision depends on it.
events = _numbered_table(
    "events",
    _text("pipeline"),
    _text("window"),
    _number("happened_at"),
    _text("event"),
    _text("facts"),
    Index(None, "pipeline", "window"),
)
# A model line. Whoever trains it, judges it or lets it serve locks its row first.
lines = _numbered_table(
    "lines",
    _text("pipeline"),
    _text("line"),
    # Grows whenever a job takes the line.
    _number("lease_epoch"),
    Column("lease_job", Text),
    UniqueConstraint("pipeline", "line"),
)
# Who asks those who follow the line's streams to stop for now: people, or a job of past windows.
pauses = _table(
    "pauses",
    Column("line_id", ForeignKey("lines.id"), primary_key=True),
    Column("asked_by", Text, primary_key=True),
    _text("why"),
    # From then on nobody heeds it.
    _number("until"),
)
# A window that was trained to its end, in one generation of its plan. It outlives the plan.
links = _numbered_table(
    "links",
    Column("line_id", ForeignKey("lines.id"), nullable=False),
    _window_id(),
    _number("generation"),
    # Of the window. The links before and after a link are found among links alone, however many
    # windows are planned ahead.
    _number("starts_at"),
    _number("ends_at"),
    Column("parent_id", ForeignKey("links.id")),
    # Whether a later window of the line was trained already.
    Column("late", Boolean, nullable=False),
    _number("step"),
    _number("steps"),
    _number("resumed_from_step"),
    # Where that step was sealed, if another runtime did it.
    Column("resumed_from_runtime", Text),
    _number("reread_rows"),
    _text("model_fingerprint"),
    _number("started_at"),
    _number("finished_at"),
    _number("recorded_at"),
    UniqueConstraint("line_id", "window_id", "generation"),
    Index(None, "line_id", "late", "ends_at", "starts_at"),
    Index(None, "line_id", "ends_at", "starts_at"),
)
# What the model of a link has seen of one source before the window and after it, what data
# executors read and refused of it, how many rows each paradigm trained on, and which span of the
# source the line has covered by then (JSON).
link_rows = _table(
    "link_rows",
    Column("link_id", ForeignKey("links.id"), primary_key=True),
    Column("source", Text, primary_key=True),
    _number("position"),
    *(
        _number(f"{when}_{what}")
        for when in ("base", "seen")
        for what in ("rows", "sum", "sum_of_squares")
    ),
    _number("served_rows"),
    _number("dead_rows"),
    _number("late_rows"),
    _number("odd_timestamps"),
    _text("first_odd"),
    _number("label_not_known_rows"),
    _text("learnt"),
    _text("coverage"),
    _number("offsets_records"),
    _number("offsets_control"),
    _number("offsets_aborted"),
    _number("offsets_compacted"),
)
# What a link has in the store, by kind: its checkpoint, scores, steps, dead letters and the model
# that serves.
link_files = _table(
    "link_files",
    Column("link_id", ForeignKey("links.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    *_stored(),
    Index(None, "kind", "link_id"),
)
# A window in training: its newest checkpoint that is in the store, for another host to continue
# from. It is replaced by the window's link.
seals = _table(
    "seals",
    Column("line_id", ForeignKey("lines.id"), primary_key=True),
    _window_id(primary_key=True),
    _number("generation"),
    # Of the window.
    _number("step"),
    _text("model_fingerprint"),
    _number("stored_at"),
    *_stored(),
)
# A model of a window in training that serves before the window has ended, or did lately.
exports = _table(
    "exports",
    Column("line_id", ForeignKey("lines.id"), primary_key=True),
    _window_id(primary_key=True),
    Column("generation", BigInteger, primary_key=True),
    # Of the window.
    Column("step", BigInteger, primary_key=True),
    # When the newest row of a stream that it has learnt was published, if that is known.
    Column("newest_at", BigInteger),
    _number("exported_at"),
    *_stored(),
)
# How good a link is: its newest judgement.
judgements = _table(
    "judgements",
    Column("link_id", ForeignKey("links.id"), primary_key=True),
    _number("judged_at"),
    _text("document"),
)
# The model that serves: of a link of the line, or of one that it had before it began anew.
served = _table(
    "served",
    Column("line_id", ForeignKey("lines.id"), primary_key=True),
    _window_id(),
    _number("generation"),
    # Of its window, where that had not ended: one of `exports`. 0: the model of a link.
    _number("step"),
    # Of its folder at the serving path: grows with each switch.
    _number("integer"),
    # Whether it serves until somebody unpins it.
    Column("pinned", Boolean, nullable=False),
    _number("published_at"),
    *_stored(),
)
# What served when, by whom and why, from each line's first model on.
switches = _numbered_table(
    "switches",
    Column("line_id", ForeignKey("lines.id"), nullable=False),
    _window_id(),
    _number("generation"),
    _number("step"),
    _number("integer"),
    _text("action"),
    _text("who"),
    _text("why"),
    _number("happened_at"),
    Index(None, "line_id"),
)
# A job: what its last submission trains, who owns it, and its state as last reported.
jobs = _numbered_table(
    "jobs",
    _text("job_id"),
    _text("pipeline"),
    _text("line"),
    Column("publishes", Boolean, nullable=False),
    # Of the request without its windows. The request itself holds values of the environment.
    _text("fingerprint"),
    # The home folder on the host that runs the job, or ran it last.
    _text("runtime"),
    _text("state"),
    # Of the newest owner, and of the submission that runs or ran last.
    _number("epoch"),
    _number("run_epoch"),
    # The scheduler's run that made `epoch`; null if no run was given.
    Column("owner_run", Text),
    # Of an open request to end the job.
    Column("cancel_epoch", BigInteger),
    # What somebody wants of its processes: counts and limits, with a version.
    _text("desired"),
    _text("document"),
    _number("submitted_at"),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    # Grows as long as the supervisor lives, across all submissions.
    _number("beats"),
    Column("beat_at", BigInteger),
    Column("progress", Text),
    UniqueConstraint("job_id"),
    Index(None, "pipeline", "line", "state"),
    Index(None, "pipeline", "line", "submitted_at"),
    Index(None, "owner_run"),
)
# The windows of a job's last submission, in the order of training.
job_windows = _table(
    "job_windows",
    Column("job_row", ForeignKey("jobs.id"), primary_key=True),
    Column("position", BigInteger, primary_key=True),
    _text("window"),
    _number("generation"),
    Index(None, "window"),
)
# When a run of an Airflow DAG last failed.
failed_runs = _table("failed_runs", Column("dag_id", Text, primary_key=True), _number("failed_at"))
# Names that were garbage: no row may name them any more.
tombstones = _table("tombstones", Column("name", Text, primary_key=True), _number("buried_at"))
# The tables whose rows name bytes of the store, in a column `name`.
STORED = (manifests, listings, link_files, seals, exports, served)
for _named in STORED:
    Index(None, _named.c.name)


T = TypeVar("T")
# Databases limit how many values one statement may contain.
_VALUES_MAX = 10_000


def batches(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in their order, as many at a time as one statement may contain."""
    left = iter(values)
    while some := list(islice(left, _VALUES_MAX)):
        yield some


def inserted_id(result: CursorResult[Any]) -> int:
    key = result.inserted_primary_key
    if key is None:
        raise RuntimeError("a row was stored without a number")
    return int(key[0])
