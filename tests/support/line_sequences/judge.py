"""The independent count: which rows each link must hold, and which a line has left out for good.

It knows what was written, what was declared when a plan was made, and the formulas of
docs/internals/guarantees.md. Of Forebay it reads plans, borders and links; it computes none with
its code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from support import independent
from support.line_sequences.declared import Declared, Use
from support.line_sequences.world import NO_ROWS, Row, Rows, World, sums_of, within
from support.sequences.declared import CLICKS
from support.sequences.judge import Borders, Fault, Place
from support.sequences.operations import Facts

Span = tuple[datetime, datetime]
Name = tuple[str, str, int]
Known = Mapping[Place, Mapping[datetime, int]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# How Forebay tells of rows that a line will never train.
_NEVER = re.compile(r"never (be )?trained|not trained on|left out|without rows of", re.IGNORECASE)
_COUNTS = re.compile(r"has ([\d,]+) rows? now, and had ([\d,]+)")
_SKIPPED = re.compile(r"\bwithout\b|\bskipped\b", re.IGNORECASE)


class Told(NamedTuple):
    """What there is to read of a window that was just trained.

    link: as it is stored. why: the answer of `forebay why`. notes: of the command that trained it;
    None where it prints none (a stage of Airflow).
    """

    link: Facts
    why: str
    notes: list[str] | None


@dataclass(frozen=True)
class Part:
    """What one use gives to one plan.

    whole: the window in the use's time, before `starts` and `ends`. times: all rows of files that
    were there. offsets: of a log. gone: partitions of it whose folder was not there, and of which
    it was not decided yet that they have nothing for it. epoch: how often it had been made anew.
    log: where it was. skipped: late.
    """

    use: Use
    rows: Rows
    whole: Span
    times: Mapping[Row, datetime] = field(default_factory=dict)
    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    epoch: int = 0
    log: str = ""
    skipped: bool = False

    @property
    def begins_elsewhere(self) -> bool:
        """Whether `starts` says that its log, which may be another one, has no row before."""
        return self.use.starts is not None and self.whole[0] <= self.use.starts

    @property
    def limits(self) -> str:
        use = self.use
        found = f"offset {use.offset}, starts {use.starts}, ends {use.ends}, by {use.column!r}"
        return found + (", skipped" if self.skipped else "")


@dataclass(frozen=True)
class Lineage:
    """A link together with all its parents, by use.

    begin: where its first window begins. floor: since when it has had rows, by the earliest
    `starts` that it was trained with. until: up to where rows have been due so far: the end of the
    last window, or an earlier `ends`. reached: by partition of a log, the offset up to which it
    has been read. named: rows of which it was told that they are never trained, and partitions of
    which it was told that they are gone.
    """

    rows: dict[str, Rows]
    begin: dict[str, datetime]
    floor: dict[str, datetime]
    until: dict[str, datetime]
    last: dict[str, Part]
    reached: dict[str, dict[str, int]]
    seen: dict[str, independent.Sums]
    named: dict[str, tuple[Rows, frozenset[str]]]


_NOTHING = Lineage({}, {}, {}, {}, {}, {}, {}, {})


@dataclass
class Judge:
    world: World
    declared: Declared
    plans: dict[tuple[str, int], dict[str, Part]] = field(default_factory=dict)
    lineages: dict[Name, Lineage] = field(default_factory=dict)
    links: dict[Name, Facts] = field(default_factory=dict)
    borders: Borders = field(default_factory=Borders)

    def look(self, facts: Facts, told: Callable[[str, Facts], Told]) -> None:
        """Raise Fault for anything that is wrong now. told: about a link of a line."""
        clicks, known = self.world.clicks, self.borders.known
        self.borders.look(facts["borders"], clicks.partitions, clicks.touched)
        for plan in facts["plans"]:
            name = (plan["window"], plan["generation"])
            if name not in self.plans:
                self.plans[name] = self._plan(plan, known)
        for line, found in facts["lines"].items():
            for link in sorted(found["links"], key=lambda each: each["finished_at"]):
                self._link(line, link, told)

    def begin_anew(self, line: str) -> None:
        for known in (self.lineages, self.links):
            for name in [each for each in known if each[0] == line]:
                del known[name]

    def span(self, line: str, window: str, generation: int) -> Span:
        link = self.links[line, window, generation]
        return datetime.fromisoformat(link["start"]), datetime.fromisoformat(link["end"])

    def has_changed(self, window: str, generation: int) -> bool:
        return any(
            within(self._times(part.use), *_asked(part.use, part.whole)) != part.rows
            for part in self.plans[window, generation].values()
            if part.use.source != CLICKS and part.use in self.declared.uses() and not part.skipped
        )

    def trained_rows(self, line: str, window: str, generation: int) -> dict[str, int]:
        trained = self.links[line, window, generation]["trained"]
        return {use: sums["rows"] for use, sums in trained.items()}

    # Plans ----------------------------------------------------------------------------------

    def _plan(self, plan: Facts, known: Known) -> dict[str, Part]:
        """What a plan that was made just now must hold: no data has changed meanwhile.

        known: borders that were there before.
        """
        window = plan["window"]
        first, end = (datetime.fromisoformat(plan[each]) for each in ("start", "end"))
        # A line keeps the warm start that it began with, whatever is declared since.
        kept = "_" in window and any(
            window == name[1] and self.span(*name) == (first, end) for name in self.links
        )
        if not kept and (first, end) != self.declared.span(window):
            raise Fault("a window's time", f"{window} is {first} to {end}")
        found = {}
        for use in self.declared.uses():
            source = plan["sources"].get(use.name)
            if source is None:
                raise Fault("a plan without a use", f"{window}: {use.name}")
            part = self._part(use, source, (first - use.offset, end - use.offset), known)
            if source["rows"] not in {None, len(part.rows)}:
                text = f"{window}, {use.name}: {source['rows']} and not {len(part.rows)}"
                raise Fault("planned rows", text)
            found[use.name] = part
        return found

    def _part(self, use: Use, source: Facts, whole: Span, known: Known) -> Part:
        if source["reason"].startswith("skipped"):
            if use.late != "skip":
                raise Fault("skipped unasked", f"{use.name}: {source['reason']}")
            return Part(use, NO_ROWS, whole, self._times(use), log=self.declared.log, skipped=True)
        first, end = _asked(use, whole)
        if use.source != CLICKS:
            times = self._times(use)
            return Part(use, within(times, first, end), whole, times)
        clicks = self.world.clicks
        if first >= end:
            return Part(use, NO_ROWS, whole, epoch=clicks.epoch, log=self.declared.log)
        offsets = {name: (a, b) for name, (a, b) in source["offsets"].items()}
        rows: set[Row] = set()
        for name, span in offsets.items():
            if name in clicks.partitions and span[0] < span[1]:
                partition = clicks.partitions[name]
                rows |= clicks.rows_of(partition, partition.between(*span))
        of_log = {place[1]: known[place] for place in known if place[0] == self.declared.log}
        gone = frozenset(name for name in clicks.gone if may_have_rows(of_log.get(name), whole))
        return Part(use, frozenset(rows), whole, {}, offsets, gone, clicks.epoch, self.declared.log)

    def _times(self, use: Use) -> Mapping[Row, datetime]:
        return {} if use.source == CLICKS else self.world.files[use.source].times(use.column)

    # Links ----------------------------------------------------------------------------------

    def _link(self, line: str, link: Facts, told: Callable[[str, Facts], Told]) -> None:
        """Rows of one trained window; a link never changes."""
        name = (line, link["window"], link["generation"])
        if name in self.links:
            if self.links[name] != link:
                raise Fault("a link changed", str(name))
            return
        parts = {use: self._as_trained(part) for use, part in self.plans[name[1:]].items()}
        parent = link["parent"]
        before = _NOTHING
        if parent is not None:
            before = self.lineages[line, parent["window"], parent["generation"]]
        lineage = _longer(before, parts, link)
        for use, part in parts.items():
            self._sums(name, link, use, part, before)
        self.links[name], self.lineages[name] = link, lineage
        for part in parts.values():
            self._adjoins(name, part, before, lineage, lambda: told(line, link))

    def _as_trained(self, part: Part) -> Part:
        """By what is declared now, where the plan that was made before is the same by it."""
        for use in self.declared.uses():
            alike = (use.name, use.offset, use.column) == part.use[0:1] + part.use[2:4]
            if alike and _asked(use, part.whole) == _asked(part.use, part.whole):
                return replace(part, use=use)
        return part

    @staticmethod
    def _sums(name: Name, link: Facts, use: str, part: Part, before: Lineage) -> None:
        rows = sums_of(part.rows)
        if link["trained"][use] != rows:
            raise Fault("sums", f"{name}, {use}: {link['trained'][use]} and not {rows}")
        seen = independent.added(before.seen.get(use, sums_of(NO_ROWS)), rows)
        if link["seen"][use] != seen:
            raise Fault("sums since the line began", f"{name}, {use}: {link['seen'][use]}")

    def _adjoins(
        self, name: Name, part: Part, before: Lineage, now: Lineage, told: Callable[[], Told]
    ) -> None:
        """No row is in the model twice, and none is left out that nobody named."""
        use = part.use.name
        known, last = before.rows.get(use, NO_ROWS), before.last.get(use)
        twice = part.rows & known
        if twice:
            raise Fault("trained twice", f"{name}, {use}: {_some(twice)}; {part.limits}")
        due = _due_of_files if part.use.source != CLICKS else self._due_of_log
        named, given_up = before.named.get(use, (NO_ROWS, frozenset()))
        missing = frozenset(due(part, before, now)) - part.rows - known - named
        vanished = part.gone & before.reached.get(use, {}).keys() - given_up
        if not missing and not vanished:
            return
        said = told()
        if names_gap(said, use, skipped=part.skipped):
            now.named[use] = (named | missing, given_up | vanished)
            return
        if not missing:
            text = f"{name}: partitions {sorted(vanished)}; why: {said.why}; notes: {said.notes}"
            raise Fault("a partition that is gone counts as empty", text)
        limits = f"{part.limits} (before: {last.limits if last else 'nothing'})"
        text = f"{name}, {use}: {_some(missing)}; {limits}; why: {said.why}; notes: {said.notes}"
        anew = last is not None and last.epoch != part.epoch
        # Nothing of the log is left that would say so: the run says that there were no rows.
        empty = f"source {use}: no rows in"
        if anew and not part.rows and any(each.startswith(empty) for each in said.notes or ()):
            now.named[use] = (named | missing, given_up)
            return
        raise Fault("a hole where the log was made anew" if anew else "a silent hole", text)

    def _due_of_log(self, part: Part, before: Lineage, now: Lineage) -> Iterator[Row]:
        """Rows before where a plan begins in each partition and after where its line had ended."""
        clicks, use = self.world.clicks, part.use.name
        reached, since = before.reached.get(use, {}), now.floor[use]
        last = before.last.get(use)
        if last is not None and last.epoch != part.epoch:  # whatever is older was trained before
            reached, since = {}, max(since, before.until[use])
        elif last is not None and last.log != part.log and part.begins_elsewhere:
            reached, since = {}, max(since, part.use.starts or since)
        for name, partition in clicks.partitions.items():
            if part.offsets:
                first = part.offsets[name][0] if name in part.offsets else 0
            else:  # it was not asked at all: what came in time for this window is left out
                first = partition.reached(now.until[use])
                since = max(since, before.until.get(use, since))
            low = reached.get(name, partition.kept_from)
            segments = [
                each
                for each in partition.segments
                if low <= each.base < first
                and (each.stamp >= since or (part.offsets and name in reached))
                # Of a partition that was emptied, no segment says where the time was reached.
                and (part.offsets or each.odd or each.stamp < now.until[use])
            ]
            yield from clicks.rows_of(partition, segments)


def may_have_rows(known: Mapping[datetime, int] | None, span: Span) -> bool:
    """Whether a partition may have rows of a span, as far as its borders that are known say.

    One that has none is of a log that nobody has seen with it, as one that was moved without it.
    """
    low = max((offset for at, offset in (known or {}).items() if at <= span[0]), default=0)
    high = min((offset for at, offset in (known or {}).items() if at >= span[1]), default=low + 1)
    return bool(known) and low < high


def _asked(use: Use, whole: Span) -> Span:
    return max(whole[0], use.starts or whole[0]), min(whole[1], use.ends or whole[1])


def _longer(before: Lineage, parts: Mapping[str, Part], link: Facts) -> Lineage:
    rows, begin, floor = dict(before.rows), dict(before.begin), dict(before.floor)
    until, reached = dict(before.until), dict(before.reached)
    for name, part in parts.items():
        first, end = part.whole
        rows[name] = part.rows | rows.get(name, NO_ROWS)
        begin.setdefault(name, first)
        since = max(begin[name], part.use.starts or begin[name])
        floor[name] = min(floor.get(name, since), since)
        until[name] = max(until.get(name, first), min(end, part.use.ends or end))
        ends = {partition: to for partition, (_, to) in part.offsets.items()}
        reached[name] = {**reached.get(name, {}), **ends}
    last, seen = {**before.last, **parts}, {**before.seen, **link["seen"]}
    return Lineage(rows, begin, floor, until, last, reached, seen, dict(before.named))


def _due_of_files(part: Part, before: Lineage, now: Lineage) -> Iterator[Row]:
    """Rows of files that a line must have when it has trained this window too.

    Those since what was due before, those since an earlier `starts`, and those that go from one
    window to the other when another column says their time.
    """
    use = part.use.name
    last, until = before.last.get(use), before.until.get(use, now.floor[use])
    begin = until if now.floor[use] == before.floor.get(use) else now.floor[use]
    yield from within(part.times, max(begin, now.floor[use]), max(begin, now.until[use]))
    if last is not None and last.use.column != part.use.column:
        came = within(part.times, min(part.times.values(), default=begin), now.until[use])
        yield from (row for row in came if last.times.get(row, until) >= until)


def _some(rows: Rows) -> str:
    places = sorted({row.place for row in rows})
    return f"{len(rows)} rows of {', '.join(places[:4])}"


def names_gap(told: Told, use: str, *, skipped: bool) -> bool:
    """Whether it is told for good that rows of a use are not in the line.

    skipped: the source was late, and is declared to be left out then.
    """
    words = _SKIPPED if skipped else _NEVER
    in_why = use in told.why and words.search(told.why) is not None
    in_why |= "stale" in told.why  # then it says nothing else
    if skipped or told.notes is None:
        return in_why
    return in_why and any(use in note and words.search(note) for note in told.notes)


def names_loss(text: str) -> bool:
    """Whether an advice says that it replaces trained rows by fewer."""
    counts = [[int(count.replace(",", "")) for count in each] for each in _COUNTS.findall(text)]
    fewer = any(now < before for now, before in counts)
    return fewer or re.search(r"removed|fewer|gone|deleted|lose|without", text) is not None
