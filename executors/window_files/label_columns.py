"""Segments of several labels: which of their columns and rows are those of one label.

The first label has the columns that one alone has: `fresh` and `held`, or `complete`, and
`score:mixture`. Of a further one they are `fresh:sale`, `held:sale`, `complete:sale` and
`score:sale:mixture`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from forebay.mixture.score_columns import ScoreColumn

SCORE_PREFIX = "score:"
FRESH, COMPLETE, HELD = "fresh", "complete", "held"


def label_column(column: str, label: str) -> str:
    """Where `fresh`, `held` or `complete` is kept of a label; "" is the first."""
    return f"{column}:{label}" if label else column


def of_label(table: pa.Table, label: str, *, every_row: bool) -> pa.Table:
    """What a segment holds of one label, as if there were no other.

    Args:
        table: of a segment.
        label: whose; "" is the only one, or the first.
        every_row: rows that do not say the label stay, with NaN.
    """
    names = {name: _name(name, label) for name in table.column_names}
    if all(new == old for old, new in names.items()):
        return table  # of one label alone
    kept = [name for name, new in names.items() if new is not None]
    # A label comes where that of one alone is.
    order = sorted(kept, key=lambda name: table.column_names.index(names[name] or name))
    found = table.select(order).rename_columns([names[name] or name for name in order])
    found = found.replace_schema_metadata(table.schema.metadata)
    said = next(name for name in (FRESH, COMPLETE) if name in found.column_names)
    return found if every_row else found.filter(pc.is_finite(found.column(said)))


def _name(column: str, label: str) -> str | None:
    """What a column is called among those of a label; None where it is another label's."""
    if column.startswith(SCORE_PREFIX):
        score = ScoreColumn.named(column.removeprefix(SCORE_PREFIX))
        if score.label != label:
            return None
        return SCORE_PREFIX + score.name.removeprefix(f"{label}:" if label else "")
    base, _, of = column.partition(":")
    if base in {FRESH, COMPLETE, HELD}:
        return base if of == label else None
    return column
