"""Links of a model line as a training would leave them, without training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, update

from forebay.datatasks.ledger import Ledger
from forebay.datatasks.plans import WindowPlan
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.executors.model_line import link_rows
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, ReadRows
from forebay.executors.window_files.checkpoints import MODEL_FOLDER, SEAL_NAME, Seal
from forebay.home.database import database_of
from forebay.home.tables import judgements, links, served
from forebay.home.tables import link_rows as sums
from forebay.mixture.row_sums import RowSums
from support.links import AT, link, window_of


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
    """Store a link, and a plan of its generation where there is none."""
    plan_empty(Ledger(chain.home, chain.pipeline), trained.window, trained.generation)
    chain.record(trained)


def plan_empty(ledger: Ledger, window: str, generation: int = 1) -> None:
    """A plan without sources, where the window has none of this generation."""
    if generation in ledger.generations(window):
        return
    span = window_of(window)
    plan = WindowPlan(
        window=window,
        generation=generation,
        start=span.start,
        end=span.end,
        sources={},
        fingerprint=f"of generation {generation}",
    )
    ledger.record_plan(plan, {})


def mark_trained(ledger: Ledger, window: str, generation: int, line: str = "main") -> None:
    """Store that a line has trained a window: no rows, no parent."""
    chain = ModelChain(ledger.home, ledger.pipeline, line)
    if chain.link(window, generation) is None:
        chain.record(link(window, generation=generation))


def replace_link(chain: ModelChain, trained: Link) -> None:
    """Change what is stored of a link, as no training does."""

    def work(rows: Connection) -> None:
        line = link_rows.locked_line(rows, chain.pipeline, chain.line)
        old = link_rows.link_id(rows, line, trained.name)
        rows.execute(update(links).where(links.c.id == old).values(generation=-1))
        link_rows.store_link(rows, line, chain.pipeline, trained)
        new = link_rows.link_id(rows, line, trained.name)
        rows.execute(update(links).where(links.c.parent_id == old).values(parent_id=new))
        for table in (served, judgements):
            rows.execute(update(table).where(table.c.link_id == old).values(link_id=new))
        rows.execute(delete(sums).where(sums.c.link_id == old))
        rows.execute(delete(links).where(links.c.id == old))

    database_of(chain.home).transact(work)


def read(rows: int, dead: int = 0) -> TaskProgress:
    """A task that was read to its end."""
    return TaskProgress(position=Position(0, rows), rows_read=rows, dead_rows=dead, ended=True)


def keep_checkpoint(chain: ModelChain, link: Link) -> None:
    """A final checkpoint of a link, with a model of no files."""
    folder = chain.folder(link.window, link.generation) / "checkpoints" / f"{link.steps:012d}-final"
    (folder / MODEL_FOLDER).mkdir(parents=True)
    seal = Seal(
        window=link.window,
        generation=link.generation,
        step=link.step,
        window_step=link.steps,
        final=True,
        parent=link.parent,
        progress={f"{name}/0": read(each.rows) for name, each in link.read.items()},
        base_seen=list(link.base_seen.values()),
        seen=list(link.seen.values()),
        scores=link.scores,
        sealed_at=link.finished_at,
    )
    (folder / SEAL_NAME).write_text(seal.model_dump_json())
