"""Links of a model line as a training would leave them, without training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.executors.model_line.chain import Link, ModelChain
from forebay.executors.model_line.checkpoints import MODEL_FOLDER, SEAL_NAME, Seal
from forebay.mixture.row_sums import RowSums
from support.links import AT, link


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
    """One trained window of so many rows by source, each read as one task; built on the newest
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
            "progress": {f"{name}/0": read(count) for name, count in rows.items()},
            "finished_at": AT + timedelta(seconds=seconds),
            **more,
        },
    )
    chain.record(recorded)
    return recorded


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
        progress=link.progress,
        base_seen=list(link.base_seen.values()),
        seen=list(link.seen.values()),
        scores=link.scores,
        sealed_at=link.finished_at,
    )
    (folder / SEAL_NAME).write_text(seal.model_dump_json())
