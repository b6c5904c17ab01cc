"""Segments of several labels: which of their columns and rows belong to one label.

The first label has the columns of a single one: `fresh` and `held`, or `complete`, and
`score:mixture`. Those of a further one are `fresh:sale`, `held:sale`, `complete:sale` and
`score:sale:mixture`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from forebay.mixture.score_columns import ScoreColumn

SCORE_PREFIX = "score:"
FRESH, COMPLETE, HELD = "fresh", "complete", "held"


def label_column(column: str, label: str) -> str:
    """The column with `fresh`, `held` or `complete` of a label; "" is the first."""
    return f"{column}:{label}" if label else column


def of_label(table: pa.Table, label: str, *, every_row: bool) -> pa.Table:
    """The part of a segment for one label, as if there were no other.

    Args:
        table: of a segment.
        label: whose; "" is the only one, or the first.
        every_row: rows without the label are kept, with NaN.
    """
    names = {name: _name(name, label) for name in table.column_names}
    if all(new == old for old, new in names.items()):
        return table  # of a single label
    kept = [name for name, new in names.items() if new is not None]
    # A label's columns go where those of a single label are.
    order = sorted(kept, key=lambda name: table.column_names.index(names[name] or name))
    found = table.select(order).rename_columns([names[name] or name for name in order])
    found = found.replace_schema_metadata(table.schema.metadata)
    said = next(name for name in (FRESH, COMPLETE) if name in found.column_names)
    return found if every_row else found.filter(pc.is_finite(found.column(said)))


def _name(column: str, label: str) -> str | None:
    """A column's name among those of a label; None if it is another label's."""
    if column.startswith(SCORE_PREFIX):
        score = ScoreColumn.named(column.removeprefix(SCORE_PREFIX))
        if score.label != label:
            return None
        return SCORE_PREFIX + score.name.removeprefix(f"{label}:" if label else "")
    base, _, of = column.partition(":")
    if base in {FRESH, COMPLETE, HELD}:
        return base if of == label else None
    return column
