"""Everything that happens to a pipeline, in any order; after each step the count is right."""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from forebay.home.paths import Home
from support.sequences.children import in_child
from support.sequences.declared import (
    CLICKS,
    COLUMNS,
    DAILY,
    FIRST_DAY,
    HISTORY,
    day,
    key,
    number_of,
    pipeline_of,
    project_of,
    sources_of,
)
from support.sequences.judge import Judge, span_of
from support.sequences.operations import Ended, KilledOperations
from support.sequences.truth import File, Files, Log

DAYS = 5
STEP = timedelta(minutes=50)
# What a clock that is wrong for months says.
FAR = datetime(2035, 1, 1, tzinfo=UTC)
PARTITIONS = st.sampled_from(["0", "0", "1", "2"])
LINE = st.sampled_from(["main", "main", "b"])
# Where an operation is killed: mostly nowhere. It has some hundred places.
POINT = st.one_of(st.none(), st.none(), st.integers(1, 120), st.integers(1, 600))
NULLS = st.sampled_from([(), (), (0,), (1, 2)])
# What a refusal has to say, besides what it is about: what to do now.
WAY_OUT = re.compile(
    r"\b(run|declare|put|plan|train|wait|begin|forget|clear|correct)\b", re.IGNORECASE
)

SEEN: Counter[str] = Counter()


class Sequences(RuleBasedStateMachine):
    """The invariant is checked at the end of each rule that changes what the home says."""

    def __init__(self) -> None:
        super().__init__()
        logging.disable(logging.CRITICAL)
        self.root = Path(tempfile.mkdtemp(prefix="sequences"))
        self.log = Log(self.root / "data" / CLICKS)
        self.files = Files(self.root / "data")
        self.claims = 0
        self.cut: set[tuple[str, int, int]] = set()  # reprocesses that did not come to their end

    @initialize(warm=st.booleans(), rows=st.integers(1, 40))
    def begin(self, warm: bool, rows: int) -> None:
        self._begin(warm, rows, None)

    def _begin(self, warm: bool, rows: int, stream: dict[str, Any] | None) -> None:
        stream = stream or {"kind": "log", "options": {"path": f"data/{CLICKS}"}}
        sources = sources_of(stream, COLUMNS, "3d")
        project = project_of(self.root, sources, pipeline_of(warm=warm))
        self.warm = warm
        self.judge = Judge(self.log, self.files)
        self.operations = KilledOperations(lambda: project, Home(self.root / ".forebay"))
        for source in (HISTORY, DAILY):
            for number in range(-2, DAYS):
                self._write(source, "first", number, rows, 20, ())
        self.log.append("0", [(day(0) + number * STEP, 3, (), False) for number in range(29)])

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    # What is written ------------------------------------------------------------------------

    @rule(name=PARTITIONS, quiet=st.integers(0, 30), count=st.integers(1, 40), nulls=NULLS)
    def append(self, name: str, quiet: int, count: int, nulls: tuple[int, ...]) -> None:
        """In time, after some quiet hours."""
        begin = self._next(name) + timedelta(hours=quiet)
        self.log.append(name, [(begin + number * STEP, 3, nulls, False) for number in range(count)])

    @rule(name=PARTITIONS, hours=st.integers(1, 60), count=st.integers(1, 4), nulls=NULLS)
    def append_late(self, name: str, hours: int, count: int, nulls: tuple[int, ...]) -> None:
        stamp = self._next(name) - timedelta(hours=hours)
        partition = self.log.partition(name)
        partition.sure &= partition.is_dense() and partition.is_ahead(partition.late(count, 2))
        self.log.append(name, [(stamp, 2, nulls[:1], False)] * count)

    @rule(name=PARTITIONS, count=st.sampled_from([1, 2, 100]))
    def append_far(self, name: str, count: int) -> None:
        partition = self.log.partition(name)
        partition.sure &= partition.is_dense()
        self.log.append(name, [(FAR + number * STEP, 1, (), True) for number in range(count)])

    @rule(name=PARTITIONS, count=st.sampled_from([1, 2, 3, 99]), hours=st.integers(26, 70))
    def append_odd(self, name: str, count: int, hours: int) -> None:
        """A clock that is ahead of its neighbours', and as many rows in time after it."""
        begin = self._next(name)
        partition = self.log.partition(name)
        partition.sure &= partition.is_dense()
        ahead = begin + timedelta(hours=hours)
        self.log.append(name, [(ahead + number * STEP, 1, (), True) for number in range(count)])
        step = STEP / 10
        self.log.append(name, [(begin + number * step, 1, (), False) for number in range(count)])

    @rule(name=PARTITIONS, count=st.integers(101, 110), hours=st.integers(3, 70))
    def append_moved_on(self, name: str, count: int, hours: int) -> None:
        """Too many to be odd: what comes after them in time is late."""
        begin = self._next(name)
        partition = self.log.partition(name)
        partition.sure = False
        self.log.append(name, [(begin + timedelta(hours=hours), 1, (), False)] * count)
        self.log.append(name, [(begin, 2, (), False)])

    @rule(name=PARTITIONS, count=st.integers(1, 60), line=st.sampled_from(["main", "b"]))
    def trim(self, name: str, count: int, line: str) -> None:
        """Remove what one line has trained."""
        reached = self.judge.reached.get(line, {}).get(name, 0)
        if reached:
            old = [each for each in self.log.partitions[name].segments if each.end <= reached]
            self.log.trim(name, min(count, len(old)))

    @rule(name=PARTITIONS, count=st.integers(1, 60))
    def trim_too_much(self, name: str, count: int) -> None:
        """Remove what may be needed."""
        if name in self.log.partitions and self.judge.reached.get("main"):
            self.log.trim(name, count)

    @rule(
        source=st.sampled_from([HISTORY, DAILY]),
        name=st.sampled_from(["first", "second", "third"]),
        number=st.integers(-3, DAYS),
        rows=st.integers(1, 30),
        minutes=st.sampled_from([1, 20, 90, 300]),
        nulls=NULLS,
    )
    def write_file(
        self, source: str, name: str, number: int, rows: int, minutes: int, nulls: tuple[int, ...]
    ) -> None:
        self._write(source, name, number, rows, minutes, nulls)

    @rule(source=st.sampled_from([HISTORY, DAILY]), which=st.integers(0, 20))
    def remove_file(self, source: str, which: int) -> None:
        paths = sorted(self.files.by_source[source])
        if len(paths) > 1:
            self.files.remove(source, paths[which % len(paths)])

    # What is done ---------------------------------------------------------------------------

    @rule(first=st.integers(0, DAYS - 1), count=st.integers(1, 2), point=POINT)
    def plan(self, first: int, count: int, point: int | None) -> None:
        last = min(first + count - 1, DAYS - 1)
        trained = self.judge.settled("main").keys()
        changed = self.judge.changed() & trained & {key(each) for each in range(first, last + 1)}
        ended = self._do("plan", partial(self.operations.plan, key(first), key(last)), point)
        for window in changed if ended.answer is not None else ():
            notes = ended.answer["notes"]
            told = [note for note in notes if window in note and "changed" in note]
            assert told, f"{window} was trained on other data: {notes}"

    @rule(back=st.integers(0, 2), count=st.integers(1, 2), line=LINE, point=POINT)
    def run(self, back: int, count: int, line: str, point: int | None) -> None:
        first = max(0, self._untrained(line) - back)
        self._run(first, first + count - 1, line, point, reprocess=False)

    @rule(first=st.integers(0, DAYS - 1), line=LINE, point=POINT)
    def run_any(self, first: int, line: str, point: int | None) -> None:
        self._run(first, first, line, point, reprocess=False)

    @rule(back=st.integers(1, 3), count=st.integers(1, 2), line=LINE, point=POINT)
    def reprocess(self, back: int, count: int, line: str, point: int | None) -> None:
        first = max(0, self._untrained(line) - back)
        self._run(first, first + count - 1, line, point, reprocess=True)

    @rule(back=st.integers(0, 2), line=LINE, again=st.booleans(), point=POINT)
    def stages(self, back: int, line: str, again: bool, point: int | None) -> None:
        number = max(0, self._untrained(line) - back)
        if number >= DAYS:
            return
        self.claims += 1
        claim = f"run-{self.claims}"
        work = partial(self.operations.stages, key(number), line, claim, again=again)
        ended = self._do("stages", work, point, number, line)
        if ended.answer is not None:
            SEEN[f"stages: {ended.answer['state']}"] += 1
            if ended.answer["state"] == "trained":
                assert key(number) in self.judge.trained(line)

    @rule(which=st.integers(0, DAYS), line=LINE, point=POINT)
    def forget(self, which: int, line: str, point: int | None) -> None:
        planned = sorted(self.judge.planned_by(line))
        if not planned:
            return
        window = planned[which % len(planned)]
        other = "main" if line == "b" else "b"
        before = self.judge.settled(other)
        ended = self._do("forget", partial(self.operations.forget, window, line), point)
        assert self.judge.settled(other) == before
        if not ended.killed:
            assert window not in self.judge.planned_by(line)

    @rule(point=POINT)
    def collect(self, point: int | None) -> None:
        if self.judge.planned():
            self._do("collect", self.operations.collect, point)

    # How ------------------------------------------------------------------------------------

    def _run(self, first: int, last: int, line: str, point: int | None, *, reprocess: bool) -> None:
        last = min(last, DAYS - 1)
        first = min(first, last)
        before, settled = self._names(line), self.judge.settled(line)
        how: dict[str, Any] = {"reprocess": reprocess, "on_stale": "train"}
        work = partial(self.operations.run, key(first), key(last), line, **how)
        ended = self._do("reprocess" if reprocess else "run", work, point, first, line)
        if not reprocess:
            again = {window for window, _ in self._names(line) - before} & settled.keys()
            assert not again, f"{line}: {again} is trained again, and nobody has asked for it"
        request = (line, first, last)
        if ended.answer is None:
            self.cut |= {request} if reprocess else set()
            return
        assert ended.answer["rows_agree"]
        asked = {key(each) for each in range(first, last + 1)}
        assert asked <= set(self.judge.trained(line))
        if reprocess and request in self.cut:
            self.cut.remove(request)  # it went on: some windows were read again before
        elif reprocess:
            new = {window for window, _ in self._names(line) - before}
            assert asked <= new, f"{line}: {asked} was to be read again, and {new} was"

    def _names(self, line: str) -> set[tuple[str, int]]:
        links = self.judge.facts["lines"][line]["links"] if self.judge.facts else []
        return {(link["window"], link["generation"]) for link in links}

    def _do(
        self,
        name: str,
        work: Callable[[], Any],
        point: int | None,
        first: int = 0,
        line: str = "main",
    ) -> Ended:
        """Do something in a child, look at what there is then, and see whether a no was right."""
        next_window = self._untrained(line)
        ended = in_child(work, point)
        looked = in_child(self.operations.look)
        assert not looked.refusal, looked.refusal
        SEEN[f"{name}: {'killed' if ended.killed else ended.refusal[:60] or 'done'}"] += 1
        self.judge.look(looked.answer)
        if ended.refusal:
            why = self._reason(ended.refusal, first, next_window, line)
            assert why, f"{name} is refused for no reason: {ended.refusal}"
            assert WAY_OUT.search(ended.refusal), f"no way out: {ended.refusal}"
        return ended

    def _reason(self, refusal: str, first: int, next_window: int, line: str) -> bool:
        trimmed = any(each.kept_from for each in self.log.partitions.values())
        lost = trimmed and self.log.place in refusal
        gone = trimmed and f"data/{CLICKS}/" in refusal
        reasons = {
            "not trained yet, and each window starts": lambda: (
                first > next_window or self._follows_a_gap(first, line)
            ),
            "is silent: no rows for longer": lambda: self._is_silent(refusal),
            "it has no rows": lambda: self._is_empty(refusal),
            "and was trained on none of them": lambda: self._is_empty(refusal),
            "were deleted": lambda: lost,
            "were planned, but some of their records were deleted": lambda: lost,
            # Another line has trained that plan.
            "was planned but is gone": lambda: gone or self._changed_since(refusal),
            "was changed after it was planned": lambda: self._changed_since(refusal),
            "is not trained although its run says so": lambda: (
                key(first - 1) not in self.judge.trained(line)
            ),
            "is part of the warm start": lambda: self.warm,
        }
        return any(text in refusal and is_so() for text, is_so in reasons.items())

    def _follows_a_gap(self, first: int, line: str) -> bool:
        """Whether a line began anew with an earlier window, and the day before one is missing."""
        spans = [span_of(window) for window in self.judge.trained(line)]
        before = [end for start, end in spans if number_of(start) < first]
        return bool(before) and number_of(before[-1]) < first

    def _is_silent(self, refusal: str) -> bool:
        found = re.search(r"window (\S+): source '(\w+)' is silent", refusal)
        assert found is not None, refusal
        window, source = found.groups()
        plan = self.judge.plans[window, self.judge.planned()[window]]
        return plan.rows[source].count == 0

    def _is_empty(self, refusal: str) -> bool:
        found = re.search(r"window (\S+) cannot begin line", refusal)
        assert found is not None, refusal
        plan = self.judge.plans[found[1], self.judge.planned()[found[1]]]
        return not any(rows.sums["rows"] for rows in plan.rows.values())

    def _changed_since(self, refusal: str) -> bool:
        """Whether a file that a refusal names is another one than when a plan was made."""
        oldest = min(self.judge.plans[each].files_at for each in self.judge.planned().items())
        return any(
            f"data/{path}" in refusal and changed > oldest
            for path, changed in self.files.changed_at.items()
        )

    def _untrained(self, line: str) -> int:
        trained = self.judge.trained(line)
        return number_of(span_of(trained[-1])[1]) if trained else 0

    def _next(self, name: str) -> datetime:
        partition = self.log.partitions.get(name)
        newest = partition.newest if partition is not None else None
        if newest is None:
            others = [each.newest for each in self.log.partitions.values()]
            return max((each for each in others if each is not None), default=FIRST_DAY)
        return newest + STEP

    def _write(
        self, source: str, name: str, number: int, rows: int, minutes: int, nulls: tuple[int, ...]
    ) -> None:
        times = tuple(day(number) + each * timedelta(minutes=minutes) for each in range(rows))
        self.files.write(
            source, name, File(day(number), times, tuple(n for n in nulls if n < rows))
        )
