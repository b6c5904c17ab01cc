"""Rows of decided borders, read and written inside somebody's transaction.

Light: imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Row, bindparam, insert, select

from forebay.datatasks.sources.common.borders import Borders, Cut, Offsets, in_order
from forebay.home.database import Database
from forebay.home.tables import borders
from forebay.system.instants import from_us, now_us, to_us

_OF_PARTITION = (
    select(borders.c.instant, borders.c.offset)
    .where(borders.c.pipeline == bindparam("pipeline"), borders.c.source == bindparam("source"))
    .where(borders.c.topic == bindparam("topic"), borders.c.partition == bindparam("partition"))
)
_AT = _OF_PARTITION.where(borders.c.instant.in_(bindparam("instants", expanding=True)))
_BEFORE = (
    _OF_PARTITION.where(borders.c.instant < bindparam("instant"))
    .order_by(borders.c.instant.desc())
    .limit(1)
)
_AFTER = (
    _OF_PARTITION.where(borders.c.instant > bindparam("instant"))
    .order_by(borders.c.instant)
    .limit(1)
)
_STORE = insert(borders)


class DecidedBorders(Borders):
    """Borders of one source of one pipeline, in the database."""

    def __init__(
        self, database: Database, pipeline: str, source: str, *, only_look: bool = False
    ) -> None:
        """Nothing is read yet. only_look: nothing is decided, as nothing will follow from it."""
        self._only_look = only_look
        self._database = database
        self._of = {"pipeline": pipeline, "source": source}

    def decided(self, topic: str, cuts: Iterable[Cut]) -> dict[Cut, int]:
        """See `Borders.decided`."""
        wanted = _by_partition(cuts)
        return self._database.read(lambda rows: self._at(rows, topic, wanted))

    def decide(self, topic: str, proposed: Offsets) -> dict[Cut, int]:
        """See `Borders.decide`."""
        if not proposed:
            return {}
        wanted = _by_partition(proposed)

        def work(rows: Connection) -> dict[Cut, int]:
            known = self._at(rows, topic, wanted)
            new = {cut: offset for cut, offset in proposed.items() if cut not in known}
            near = self._neighbours(rows, topic, _by_partition(new))
            found = in_order(known | near, new)
            now = now_us()
            values = [
                {
                    **self._of,
                    "topic": topic,
                    "partition": cut.partition,
                    "instant": to_us(cut.instant),
                    "offset": offset,
                    "decided_at": now,
                }
                for cut, offset in found.items()
            ]
            if values and not self._only_look:
                rows.execute(_STORE, values)
            return known | found

        return self._database.read(work) if self._only_look else self._database.transact(work)

    def _at(self, rows: Connection, topic: str, wanted: dict[str, list[int]]) -> dict[Cut, int]:
        found: dict[Cut, int] = {}
        for partition, instants in wanted.items():
            asked = {**self._of, "topic": topic, "partition": partition, "instants": instants}
            found |= _offsets(partition, rows.execute(_AT, asked))
        return found

    def _neighbours(
        self, rows: Connection, topic: str, wanted: dict[str, list[int]]
    ) -> dict[Cut, int]:
        """The nearest decided borders before and after each instant."""
        found: dict[Cut, int] = {}
        for partition, instants in wanted.items():
            for instant in instants:
                asked = {**self._of, "topic": topic, "partition": partition, "instant": instant}
                for statement in (_BEFORE, _AFTER):
                    found |= _offsets(partition, rows.execute(statement, asked))
        return found


def _by_partition(cuts: Iterable[Cut]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for cut in sorted(cuts):
        found.setdefault(cut.partition, []).append(to_us(cut.instant))
    return found


def _offsets(partition: str, found: Iterable[Row[tuple[int, int]]]) -> dict[Cut, int]:
    return {Cut(partition, from_us(row.instant)): row.offset for row in found}
