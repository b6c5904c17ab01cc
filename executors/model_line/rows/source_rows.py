"""What a link stores about each source: row sums and counts of the rows that were read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select

from forebay.datatasks.tasks import OffsetsRead
from forebay.executors.model_line.coverage import Coverage
from forebay.executors.model_line.link import Link, ReadRows
from forebay.home.database.tables import batches, link_rows
from forebay.mixture.row_sums import RowSums

_SUMS = tuple(RowSums.model_fields)
_OFFSETS = tuple(OffsetsRead.model_fields)
# The source, and the columns that `seen_in` reads.
SEEN = (link_rows.c.source, *(link_rows.c[f"seen_{name}"] for name in _SUMS))
_STORE = insert(link_rows)
_OF_LINKS = (
    select(link_rows)
    .where(link_rows.c.link_id.in_(bindparam("ids", expanding=True)))
    .order_by(link_rows.c.link_id, link_rows.c.position)
)


def store(connection: Connection, link_id: int, link: Link) -> None:
    rows = [
        {"link_id": link_id, "source": source, "position": number, **_row_of(link, source)}
        for number, source in enumerate(link.seen)
    ]
    if rows:
        connection.execute(_STORE, rows)


def of_links(connection: Connection, links_wanted: Iterable[int]) -> dict[int, list[Row[Any]]]:
    found: dict[int, list[Row[Any]]] = {each: [] for each in links_wanted}
    for ids in batches(found):
        for row in connection.execute(_OF_LINKS, {"ids": ids}):
            found[row.link_id].append(row)
    return found


def facts_of(rows: Sequence[Row[Any]]) -> dict[str, Any]:
    return {
        "base_seen": {each.source: _sums(each, "base") for each in rows},
        "seen": {each.source: seen_in(each) for each in rows},
        "read": {each.source: _read(each) for each in rows},
        "learnt": {each.source: found for each in rows if (found := json.loads(each.learnt))},
        "coverage": {
            each.source: Coverage.of_document(each.coverage, f"a link's {each.source}")
            for each in rows
            if each.coverage
        },
    }


def seen_in(row: Row[Any]) -> RowSums:
    """What the model had seen of a source when the link was stored."""
    return _sums(row, "seen")


def _sums(row: Row[Any], when: str) -> RowSums:
    return RowSums(**{name: getattr(row, f"{when}_{name}") for name in _SUMS})


def _read(row: Row[Any]) -> ReadRows:
    return ReadRows(
        rows=row.served_rows,
        dead=row.dead_rows,
        late=row.late_rows,
        odd_timestamps=row.odd_timestamps,
        first_odd=row.first_odd,
        label_not_known=row.label_not_known_rows,
        offsets=OffsetsRead(**{kind: getattr(row, f"offsets_{kind}") for kind in _OFFSETS}),
    )


def _row_of(link: Link, source: str) -> dict[str, int | str]:
    read = link.read.get(source, ReadRows())
    base, seen = link.base_seen.get(source, RowSums()), link.seen[source]
    sums = {
        f"{when}_{name}": getattr(of, name)
        for when, of in (("base", base), ("seen", seen))
        for name in _SUMS
    }
    return {
        **sums,
        "served_rows": read.rows,
        "dead_rows": read.dead,
        "late_rows": read.late,
        "odd_timestamps": read.odd_timestamps,
        "first_odd": read.first_odd,
        "label_not_known_rows": read.label_not_known,
        "learnt": json.dumps(link.learnt.get(source, {})),
        "coverage": link.coverage[source].model_dump_json() if source in link.coverage else "",
        **{f"offsets_{kind}": getattr(read.offsets, kind) for kind in _OFFSETS},
    }
