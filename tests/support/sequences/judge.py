"""The independent count: each row that was written is in exactly one trained window of a line.

It knows what was written, the formulas of docs/internals/guarantees.md, and what the home says:
borders, plans, and the row sums of each link, which are the model's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from support import independent
from support.sequences.declared import CLICKS, DAY, OFFSETS, SOURCES
from support.sequences.operations import Facts
from support.sequences.truth import Files, Log, Partition, Rows

Offsets = dict[str, tuple[int, int]]
Place = tuple[str, str]  # topic, or path of a log, and partition
Name = tuple[str, int]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Expected:
    """What a plan has to give to its links. offsets: of the stream.

    files_at: how often files had changed when it was made.
    """

    rows: dict[str, Rows]
    offsets: Offsets
    files_at: int
    late: int
    odd: int


class Fault(AssertionError):  # noqa: N818 - what is found is a fault of Forebay's
    """Something that is wrong. kind: a few words, the same for the same fault."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass
class Borders:
    """Of a stream, as the home says them."""

    known: dict[Place, dict[datetime, int]] = field(default_factory=dict)

    def look(
        self,
        rows: list[tuple[str, str, int, int]],
        partitions: Mapping[str, Partition],
        touched: Collection[str] = (),
    ) -> None:
        """None has moved or gone, they are in order, and new ones are where the rule says.

        touched: partitions of which the rule says nothing any more.
        """
        found: dict[Place, dict[datetime, int]] = {}
        for topic, name, instant_us, offset in rows:
            at = _EPOCH + timedelta(microseconds=instant_us)
            found.setdefault((topic, name), {})[at] = offset
        self._are_still_in(found)
        for place, borders in found.items():
            partition = partitions.get(place[1])
            if partition is None or place[1] in touched:
                continue
            ordered = [offset for _, offset in sorted(borders.items())]
            if ordered != sorted(ordered):
                raise Fault("borders are not in order", f"{place}: {borders}")
            if not partition.sure:
                continue
            same = (known for (topic, _), known in self.known.items() if topic == place[0])
            before = {instant for known in same for instant in known}
            known = self.known.get(place, {})
            for instant, foretold in foretold_borders(partition, known, borders, before):
                if partition.place(borders[instant]) != partition.place(foretold):
                    text = f"{place} {instant}: {borders[instant]} is not {foretold}"
                    raise Fault("a border is elsewhere", text)
        self.known = found

    def _are_still_in(self, found: Mapping[Place, Mapping[datetime, int]]) -> None:
        for place, known in self.known.items():
            for instant, offset in known.items():
                if found.get(place, {}).get(instant) != offset:
                    raise Fault("a border moved", f"{place} {instant} was {offset}")

    def of(self, partition: str) -> dict[datetime, int]:
        """Of a stream that was never elsewhere."""
        (found,) = [known for (_, name), known in self.known.items() if name == partition]
        return found


@dataclass
class Judge:
    log: Log
    files: Files
    borders: Borders = field(default_factory=Borders)
    plans: dict[Name, Expected] = field(default_factory=dict)
    links: dict[tuple[str, str, int], Facts] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    # By line and partition of the stream: where its last trained window ends.
    reached: dict[str, dict[str, int]] = field(default_factory=dict)

    def look(self, facts: Facts) -> None:
        assert facts["faults"] == []
        self.borders.look(facts["borders"], self.log.partitions)
        for plan in facts["plans"]:
            name = (plan["window"], plan["generation"])
            if name not in self.plans:
                self.plans[name] = self._expected(plan)
        for line, found in facts["lines"].items():
            for link in found["links"]:
                self._link(line, link)
            self._line(line, found)
        self.facts = facts

    # Plans ----------------------------------------------------------------------------------

    def _expected(self, plan: Facts) -> Expected:
        """What a plan that was made just now must hold: the data has not changed meanwhile."""
        first, end = datetime.fromisoformat(plan["start"]), datetime.fromisoformat(plan["end"])
        key = plan["window"].rpartition("_")[2]
        assert (f"{first:%Y-%m-%d}" == key, end - first) == (True, DAY) or "_" in plan["window"]
        sources = plan["sources"]
        assert set(sources) == set(SOURCES)
        for name, source in sources.items():
            span = [datetime.fromisoformat(source[each]) for each in ("data_from", "data_to")]
            assert span == [first - OFFSETS[name], end - OFFSETS[name]]
        offsets = {name: (a, b) for name, (a, b) in sources[CLICKS]["offsets"].items()}
        for name, span in offsets.items():
            of_partition = self.borders.of(name)
            assert span == (of_partition[first], of_partition[end]), f"{plan['window']}: {name}"
        rows = {CLICKS: self.log.rows(offsets)}
        for name in self.files.by_source:
            rows[name] = self.files.rows(name, first - OFFSETS[name], end - OFFSETS[name])
        for name, source in sources.items():
            assert source["rows"] in {None, rows[name].count}, f"{plan['window']}: {name}"
        return Expected(rows, offsets, self.files.changes, *self.log.outside(offsets, first, end))

    # Links ----------------------------------------------------------------------------------

    def _link(self, line: str, link: Facts) -> None:
        name = (line, link["window"], link["generation"])
        if name in self.links:
            assert self.links[name] == link, f"link {name} has changed"
            return
        expected = self.plans[name[1:]]
        letters: dict[str, list[tuple[str, ...]]] = {source: [] for source in SOURCES}
        for source, location in link["letters"]:
            letters[source].append(self._place(source, location))
        for source in SOURCES:
            rows, read = expected.rows[source], link["read"][source]
            assert link["trained"][source] == rows.sums, f"{name}: {source}"
            assert sorted(letters[source]) == sorted(rows.dead), f"{name}: {source}"
            assert (read["rows"], read["dead"]) == (rows.count, len(rows.dead)), f"{name}: {source}"
        read = link["read"][CLICKS]
        assert (read["late"], read["odd_timestamps"]) == (expected.late, expected.odd), name
        assert read["offsets"] == self.log.offsets(expected.offsets), name
        self._parent(line, link)
        self.links[name] = link

    def _place(self, source: str, location: dict[str, Any]) -> tuple[str, ...]:
        if source == CLICKS:
            return self.log.letter(location)
        return str(location["file"]), str(location["row"])

    def _parent(self, line: str, link: Facts) -> None:
        parent = link["parent"]
        if parent is None:
            assert all(each["rows"] == 0 for each in link["base_seen"].values())
            return
        before = self.links[line, parent["window"], parent["generation"]]
        assert before["seen"] == link["base_seen"], f"{line} {link['window']}"
        for source in SOURCES:
            both = independent.added(before["seen"][source], link["trained"][source])
            assert link["seen"][source] == both, f"{line} {link['window']}: {source}"

    # Lines ----------------------------------------------------------------------------------

    def _line(self, line: str, found: Facts) -> None:
        """Windows do not overlap; no row of the stream is in two, or left out between them."""
        links = [self.links[line, window, found["newest"][window]] for window in found["order"]]
        for one, other in pairwise(links):
            assert one["end"] <= other["start"], f"{line}: {one['window']}, {other['window']}"
        reached = self.reached[line] = {}
        before: Facts = {}
        for link in links:
            is_next = bool(before) and before["end"] == link["start"]
            before = link
            offsets = self.plans[link["window"], link["generation"]].offsets
            for name, (first, end) in offsets.items():
                place = f"{line} {link['window']}, partition {name}"
                low = reached.get(name, 0)
                assert first >= low, place
                kept = max(low, self.log.partitions[name].kept_from)
                if name not in reached:  # what it had before the line's first window
                    begin = datetime.fromisoformat(links[0]["start"])
                    kept = max(kept, self.borders.of(name).get(begin, 0))
                assert not is_next or first <= kept, f"{place}: {low} to {first} is left out"
                reached[name] = end

    def trained(self, line: str) -> list[str]:
        found: list[str] = self.facts["lines"][line]["order"] if self.facts else []
        return found

    def planned(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for plan in self.facts["plans"] if self.facts else []:
            found[plan["window"]] = max(plan["generation"], found.get(plan["window"], 0))
        return found

    def planned_by(self, line: str) -> dict[str, int]:
        found: dict[str, int] = self.facts["lines"][line]["planned"] if self.facts else {}
        return found

    def settled(self, line: str) -> dict[str, int]:
        """Windows that a line has trained as it planned them last: it trains them no more."""
        done = self.facts["lines"][line]["done"] if self.facts else {}
        return {
            window: generation
            for window, generation in self.planned_by(line).items()
            if done[window] == generation
        }

    def changed(self) -> set[str]:
        return {
            window
            for window, generation in self.planned().items()
            for name in self.files.by_source
            if self.files.rows(name, *(at - OFFSETS[name] for at in span_of(window)))
            != self.plans[window, generation].rows[name]
        }


def span_of(window: str) -> tuple[datetime, datetime]:
    texts = window.split("_")
    first, last = (
        datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (texts[0], texts[-1])
    )
    return first, last if len(texts) > 1 else first + DAY


def foretold_borders(
    partition: Partition,
    known: dict[datetime, int],
    wanted: dict[datetime, int],
    elsewhere: set[datetime],
) -> Iterator[tuple[datetime, int]]:
    """Where new borders are, in words of docs/internals/guarantees.md.

    Args:
        partition: as it is.
        known: borders of it that stood before.
        wanted: those that there are now.
        elsewhere: instants that had borders of other partitions before: it was not there yet.
    """
    low = 0
    absent_until = _absent_until(known, wanted, elsewhere)
    for instant in sorted({*known, *wanted}):
        if instant in known:
            low = max(low, known[instant])
            continue
        absent = absent_until is not None and instant <= absent_until
        found = low if absent else max(low, partition.reached(instant))
        later = [offset for other, offset in known.items() if other > instant]
        yield instant, min([found, *later])
        low = max(low, wanted[instant])


def _absent_until(
    known: dict[datetime, int], wanted: dict[datetime, int], elsewhere: set[datetime]
) -> datetime | None:
    """The last instant up to which others were planned before a partition was there.

    All of it is in the next window after that, also when an earlier one is planned only now.
    """
    last = max(wanted.keys() - known.keys(), default=None)
    if last is None:
        return None
    own = min((instant for instant in known if instant > last), default=None)
    missed = (instant for instant in elsewhere - known.keys() if own is None or instant < own)
    return max(missed, default=None)
