"""Links of a model line as a training would leave them, without training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, update

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, ReadRows
from forebay.executors.model_line.rows import line_rows, link_writer
from forebay.executors.retention.collect import LineRetention
from forebay.home.database.open import database_of
from forebay.home.database.tables import judgements, link_files, links
from forebay.home.database.tables import link_rows as sums
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of
from forebay.mixture.row_sums import RowSums
from support.links import AT, link, window_of
from support.stages import pipeline


def record_link(
    chain: ModelChain,
    window: str,
    rows: Mapping[str, int],
    *,
    parent: str | None = None,
    generation: int = 1,
    seconds: float = 1.0,
    **more: Any,
) -> Link:
    """One trained window of so many rows by source, all of them read; built on the newest
    generation of `parent`."""
    before = chain.newest(parent) if parent else None
    base = dict(before.seen) if before else {}
    seen = base | {
        name: RowSums(rows=count + (base[name].rows if name in base else 0))
        for name, count in rows.items()
    }
    recorded = link(
        window,
        generation=generation,
        parent=(before.window, before.generation) if before else None,
        **{
            "step": 10,
            "steps": 10,
            "base_seen": base,
            "seen": seen,
            "read": {name: ReadRows(rows=count) for name, count in rows.items()},
            "finished_at": AT + timedelta(seconds=seconds),
            **more,
        },
    )
    record(chain, recorded)
    return recorded


def record(chain: ModelChain, trained: Link) -> None:
    plan_empty(Ledger(chain.home, chain.pipeline), trained.window, trained.generation)
    chain.record(trained)


def plan_empty(ledger: Ledger, window: str, generation: int = 1) -> None:
    if generation not in ledger.generations(window):
        ledger.record_plan(empty_plan(window, generation), {})


def empty_plan(window: str, generation: int = 1) -> WindowPlan:
    span = window_of(window)
    return WindowPlan(
        window=window,
        generation=generation,
        start=span.start,
        end=span.end,
        sources={},
        fingerprint=f"of generation {generation}",
    )


def mark_trained(ledger: Ledger, window: str, generation: int, line: str = "main") -> None:
    chain = ModelChain(ledger.home, ledger.pipeline, line)
    if chain.link(window, generation) is None:
        chain.record(link(window, generation=generation))


def replace_link(chain: ModelChain, trained: Link) -> None:
    def work(rows: Connection) -> None:
        line = line_rows.locked_line(rows, chain.pipeline, chain.line)
        old = line_rows.link_id(rows, line, trained.name)
        rows.execute(update(links).where(links.c.id == old).values(generation=-1))
        link_writer.store_link(rows, line, chain.pipeline, trained)
        new = line_rows.link_id(rows, line, trained.name)
        rows.execute(update(links).where(links.c.parent_id == old).values(parent_id=new))
        of_old = judgements.c.link_id == old
        rows.execute(update(judgements).where(of_old).values(link_id=new))
        for table in (sums, link_files):
            rows.execute(delete(table).where(table.c.link_id == old))
        rows.execute(delete(links).where(links.c.id == old))

    database_of(chain.home).transact(work)


def keep_checkpoint(chain: ModelChain, trained: Link) -> Link:
    return chain.add_file(trained, "checkpoint", put(chain.home))


def drop_checkpoints(chain: ModelChain, windows_kept: int) -> None:
    """Remove the checkpoints that a pipeline does not keep which keeps those of so many windows."""
    spec = pipeline(("a",), job={"checkpoint": {"windows_kept": windows_kept}})
    list(LineRetention(chain.home, spec, chain.line).remove())


def export(chain: ModelChain, trained: Link) -> str:
    """Something in the store in place of a model that serves; where it is."""
    stored = put(chain.home)
    chain.add_file(trained, "saved_model", stored)
    return store_of(chain.home).url(stored)


def put(home: Home) -> Stored:
    return store_of(home).put("models", "some", b"bytes")
