"""Rows of decided borders, read and written inside somebody's transaction.

Light: imports neither Arrow nor NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, insert, select

from forebay.config.specs.datasets import source_of
from forebay.datatasks.sources.common.contract.borders import Border, Borders, Offsets, in_order
from forebay.home.database.base import Database
from forebay.home.database.tables import borders, windows
from forebay.system.instants import from_us, now_us, to_us

_OF_PARTITION = (
    select(borders.c.instant, borders.c.offset)
    .where(borders.c.pipeline == bindparam("pipeline"), borders.c.source == bindparam("source"))
    .where(borders.c.topic == bindparam("topic"), borders.c.partition == bindparam("partition"))
)
_BETWEEN = _OF_PARTITION.where(borders.c.instant.between(bindparam("first"), bindparam("last")))
_BEFORE = (
    _OF_PARTITION.where(borders.c.instant < bindparam("first"))
    .order_by(borders.c.instant.desc())
    .limit(1)
)
_AFTER = (
    _OF_PARTITION.where(borders.c.instant > bindparam("last")).order_by(borders.c.instant).limit(1)
)
# Of windows, not of plans: a forgotten plan still says what the borders were decided in.
_LAST_SEGMENTS = (
    select(windows.c.last_segments)
    .where(windows.c.pipeline == bindparam("pipeline"), windows.c.last_segments != "")
    .order_by(windows.c.ends_at.desc())
    .execution_options(yield_per=20)  # mostly, the first one says it all
)


class DecidedBorders(Borders):
    """Borders of one source of one pipeline. only_look: nothing is decided, for nothing follows."""

    def __init__(
        self, database: Database, pipeline: str, source: str, *, only_look: bool = False
    ) -> None:
        self._only_look = only_look
        self._database = database
        self._of = {"pipeline": pipeline, "source": source}

    def near(self, topic: str, borders: Iterable[Border]) -> dict[Border, int]:
        wanted = _by_partition(borders)
        return self._database.read(lambda rows: self._near(rows, topic, wanted))

    def partitions(self, topic: str) -> dict[str, datetime]:
        last = func.max(borders.c.instant).label("last")
        of_topic = select(borders.c.partition, last).filter_by(**self._of, topic=topic)
        rows = of_topic.group_by(borders.c.partition)
        found = self._database.read(lambda connection: connection.execute(rows).all())
        return {row.partition: from_us(row.last) for row in found}

    def latest_other(self, topic: str) -> tuple[str, datetime] | None:
        of_source = select(borders.c.topic, borders.c.instant).filter_by(**self._of)
        others = of_source.where(borders.c.topic != topic).order_by(borders.c.instant.desc())
        found = self._database.read(lambda rows: rows.execute(others.limit(1)).first())
        return None if found is None else (found.topic, from_us(found.instant))

    def last_segments(self, partitions: Iterable[str], path: str | None) -> dict[str, str]:

        def work(rows: Connection) -> dict[str, str]:
            found: dict[str, str] = {}
            unseen = set(partitions)
            with rows.scalars(_LAST_SEGMENTS, self._of) as documents:
                for document in documents:
                    uses = json.loads(document).items()
                    mine = [each for use, each in uses if source_of(use) == self._of["source"]]
                    known = {place: text for each in mine for place, text in each.items()}
                    for place in sorted(known, reverse=True):  # several streams: the furthest
                        where, partition, _ = place.rsplit("/", 2)
                        if partition in unseen and path in {None, where}:
                            unseen.remove(partition)
                            found[place] = known[place]
                    if not unseen:
                        break
            return found

        return self._database.read(work)

    def decide(self, topic: str, proposed: Offsets) -> dict[Border, int]:
        if not proposed:
            return {}
        wanted = _by_partition(proposed)

        def work(rows: Connection) -> dict[Border, int]:
            near = self._near(rows, topic, wanted)
            known = {border: near[border] for border in proposed if border in near}
            new = {border: offset for border, offset in proposed.items() if border not in known}
            found = in_order(near, new)
            same = {**self._of, "topic": topic, "decided_at": now_us()}
            values = [
                {**same, "partition": name, "instant": to_us(instant), "offset": offset}
                for (name, instant), offset in found.items()
            ]
            if values and not self._only_look:
                rows.execute(insert(borders), values)
            return known | found

        return self._database.read(work) if self._only_look else self._database.transact(work)

    def _near(
        self, rows: Connection, topic: str, wanted: dict[str, list[int]]
    ) -> dict[Border, int]:
        """Where all between the first instant and the last is read, only its ends have others."""
        found: dict[Border, int] = {}
        for partition, instants in wanted.items():
            names = {**self._of, "topic": topic, "partition": partition}
            asked = {**names, "first": instants[0], "last": instants[-1]}
            for statement in (_BEFORE, _BETWEEN, _AFTER):
                for row in rows.execute(statement, asked):
                    found[Border(partition, from_us(row.instant))] = row.offset
        return found


def _by_partition(borders: Iterable[Border]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for border in sorted(borders):
        found.setdefault(border.partition, []).append(to_us(border.instant))
    return found
