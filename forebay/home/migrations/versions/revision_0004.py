"""The first tables."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Text,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem

revision, down_revision = "0004", None


def upgrade() -> None:
    """Create all tables except `forebay_version`, which Alembic creates."""
    _make("home", _text("id", primary_key=True), _number("made_at"))
    _make("tombstones", _text("name", primary_key=True), _number("buried_at"))
    _make("failed_runs", _text("dag_id", primary_key=True), _number("failed_at"))
    _make_plans()
    _make_listings()
    _make_lines()
    _make_links()
    _make_jobs()


def _make_plans() -> None:
    _make(
        "windows",
        _id(),
        _text("pipeline"),
        _text("key"),
        _number("starts_at"),
        _number("ends_at"),
        _number("last_generation"),
        UniqueConstraint("pipeline", "key"),
        Index(None, "pipeline", "ends_at", "starts_at"),
    )
    _make(
        "plans",
        _id(),
        _row_of("windows", "window_id"),
        _number("generation"),
        _text("line"),
        _text("fingerprint"),
        _text("document"),
        Column("proposed", Boolean, nullable=False),
        _number("planned_at"),
        UniqueConstraint("window_id", "generation"),
    )
    _make(
        "forgotten",
        _text("line", primary_key=True),
        _row_of("windows", "window_id", primary_key=True),
        _number("generation"),
    )
    _make(
        "manifests",
        _row_of("plans", "plan_id", primary_key=True),
        _text("stream", primary_key=True),
        *_stored(),
    )
    _make(
        "requests",
        _id(),
        _row_of("windows", "window_id"),
        _text("tag"),
        _number("generation"),
        _number("decided_at"),
        UniqueConstraint("window_id", "tag"),
    )


def _make_listings() -> None:
    _make(
        "listings",
        _text("pipeline", primary_key=True),
        _text("source", primary_key=True),
        _text("window", primary_key=True),
        _text("asked_by"),
        _text("document"),
        _number("stored_at"),
        *_stored(),
    )
    _make(
        "passes",
        _id(),
        _text("pipeline"),
        _text("source"),
        _text("window"),
        _text("asked_by"),
        _number("asked_at"),
        UniqueConstraint("pipeline", "source", "window", "asked_by"),
    )
    _make(
        "borders",
        *(_text(name, primary_key=True) for name in ("pipeline", "source", "topic", "partition")),
        _number("instant", primary_key=True),
        _number("offset"),
        _number("decided_at"),
    )
    _make(
        "events",
        _id(),
        _text("pipeline"),
        _text("window"),
        _number("happened_at"),
        _text("event"),
        _text("facts"),
        Index(None, "pipeline", "window"),
    )


def _make_lines() -> None:
    _make(
        "lines",
        _id(),
        _text("pipeline"),
        _text("line"),
        _number("lease_epoch"),
        _text("lease_job", nullable=True),
        UniqueConstraint("pipeline", "line"),
    )
    _make(
        "links",
        _id(),
        _row_of("lines", "line_id"),
        _row_of("windows", "window_id"),
        _number("generation"),
        _number("starts_at"),
        _number("ends_at"),
        _row_of("links", "parent_id", nullable=True),
        Column("late", Boolean, nullable=False),
        _number("step"),
        _number("steps"),
        _number("resumed_from_step"),
        _text("resumed_from_runtime", nullable=True),
        _number("reread_rows"),
        _text("model_fingerprint"),
        _number("started_at"),
        _number("finished_at"),
        _number("recorded_at"),
        UniqueConstraint("line_id", "window_id", "generation"),
        Index(None, "line_id", "late", "ends_at", "starts_at"),
        Index(None, "line_id", "ends_at", "starts_at"),
    )


def _make_links() -> None:
    _make(
        "link_rows",
        _row_of("links", "link_id", primary_key=True),
        _text("source", primary_key=True),
        _number("position"),
        _number("base_rows"),
        _number("base_sum"),
        _number("base_sum_of_squares"),
        _number("seen_rows"),
        _number("seen_sum"),
        _number("seen_sum_of_squares"),
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
    _make(
        "link_files",
        _row_of("links", "link_id", primary_key=True),
        _text("kind", primary_key=True),
        *_stored(),
        Index(None, "kind", "link_id"),
    )
    _make(
        "seals",
        _row_of("lines", "line_id", primary_key=True),
        _row_of("windows", "window_id", primary_key=True),
        _number("generation"),
        _number("step"),
        _text("model_fingerprint"),
        _number("stored_at"),
        *_stored(),
    )
    _make(
        "judgements",
        _row_of("links", "link_id", primary_key=True),
        _number("judged_at"),
        _text("document"),
    )
    _make(
        "served",
        _row_of("lines", "line_id", primary_key=True),
        _row_of("windows", "window_id"),
        _number("generation"),
        _number("published_at"),
        *_stored(),
    )


def _make_jobs() -> None:
    _make(
        "jobs",
        _id(),
        _text("job_id"),
        _text("pipeline"),
        _text("line"),
        Column("publishes", Boolean, nullable=False),
        _text("fingerprint"),
        _text("runtime"),
        _text("state"),
        _number("epoch"),
        _number("run_epoch"),
        _text("owner_run", nullable=True),
        _number("cancel_epoch", nullable=True),
        _text("document"),
        _number("submitted_at"),
        _number("started_at", nullable=True),
        _number("ended_at", nullable=True),
        _number("beats"),
        _number("beat_at", nullable=True),
        _text("progress", nullable=True),
        UniqueConstraint("job_id"),
        Index(None, "pipeline", "line", "state"),
        Index(None, "pipeline", "line", "submitted_at"),
        Index(None, "owner_run"),
    )
    _make(
        "job_windows",
        _row_of("jobs", "job_row", primary_key=True),
        _number("position", primary_key=True),
        _text("window"),
        _number("generation"),
        Index(None, "window"),
    )


def _make(table: str, *items: SchemaItem) -> None:
    op.create_table(table, *items)


def _text(name: str, *, nullable: bool = False, primary_key: bool = False) -> Column[Any]:
    return Column(name, Text, nullable=nullable, primary_key=primary_key)


def _number(name: str, *, nullable: bool = False, primary_key: bool = False) -> Column[Any]:
    return Column(name, BigInteger, nullable=nullable, primary_key=primary_key)


def _id() -> Column[Any]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _row_of(
    table: str, name: str, *, nullable: bool = False, primary_key: bool = False
) -> Column[Any]:
    kind = BigInteger().with_variant(Integer, "sqlite")
    key = ForeignKey(f"{table}.id")
    return Column(name, kind, key, nullable=nullable, primary_key=primary_key)


def _stored() -> tuple[SchemaItem, ...]:
    return _text("name"), _text("checksum"), _number("size_bytes"), Index(None, "name")
