"""What may go of a line, by query and rule, against the words that define it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select
from support.jobs import request
from support.links import AT, link
from support.model_lines import plan_empty
from support.there import there
from support.undone import before, newest, train, undone

from forebay.config.specs.windows import is_warm_start
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job import job_changes
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows import judgement_rows, line_rows
from forebay.executors.model_line.serving import serve
from forebay.executors.retention.old_files import forget_files, of_old_windows, that_may_go
from forebay.executors.retention.rule import LinkFile, WindowsKept
from forebay.home.database.tables import link_files
from forebay.home.paths import Home
from forebay.home.store.base import Stored

WARM = "2026-02-01_2026-03-01"
KEYS = [WARM, *(f"2026-03-0{day}" for day in range(1, 6))]
KINDS = ("checkpoint", "saved_model", "scores")
GENERATIONS = 3
JUDGED = '{"window": "-", "generation": 1, "sources": {}}'
trainings = st.lists(st.integers(0, len(KEYS) - 1), min_size=1, max_size=10).filter(
    lambda numbers: all(numbers.count(each) < GENERATIONS for each in numbers)
)
numbers_kept = st.integers(1, 4)


class Named(NamedTuple):
    window: str
    generation: int
    kind: str


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    for key in KEYS:
        for generation in range(1, GENERATIONS + 1):
            plan_empty(Ledger(home, "ads"), key, generation)
    return home


class History:
    """A line as it was trained, one window after the other, each from the newest before it."""

    def __init__(self, rows: Connection, numbers: list[int], judged: set[int]) -> None:
        self.rows = rows
        self.line = line_rows.locked_line(rows, "ads", "main")
        self.links: list[Link] = []
        self.judged: list[Link] = []
        for place, number in enumerate(numbers):
            files = {
                kind: Stored(name=f"{place}/{kind}", checksum="", size_bytes=1) for kind in KINDS
            }
            train(rows, self.line, self.links, KEYS[number], files=files)
            if place in judged:
                judgement_rows.store(rows, self.line, self.links[-1].name, JUDGED)
                self.judged.append(self.links[-1])

    def serve(self, number: int) -> Link:
        serving = self.links[number % len(self.links)]
        serve(self.rows, self.line, serving.model, "publish", AT)
        return serving

    @property
    def windows(self) -> list[str]:
        """The trained ones, in order."""
        return [key for key in KEYS if any(each.window == key for each in self.links)]


def started_from(history: History, todo: list[tuple[str, int]]) -> list[Link]:
    """What something is going to be trained from, or exported from."""
    heads = [there(newest(history.links, key)) for key in history.windows]
    found = heads[-1:]
    for head in heads:
        parent = before(history.links, head)
        if parent is not None and head.parent != parent.name:
            found.append(parent)
    trained = {(each.window, each.generation): each for each in history.links}
    untrained = [name for name in todo if name not in trained]
    if untrained:
        parent = before(history.links, link(untrained[0][0]))
        found += [parent] if parent is not None else []
    if todo and todo[-1] in trained:
        found.append(trained[todo[-1]])
    return found


def may_go(rows: Connection, line: int, counts: tuple[int, int, int]) -> list[LinkFile]:
    found = of_old_windows(rows, "ads", line, WindowsKept(*counts, records=1))
    return that_may_go(rows, "ads", "main", line, found)


@settings(max_examples=200, deadline=None)
@given(
    trainings,
    st.sets(st.integers(0, 9)),
    st.none() | st.integers(0, 9),
    st.lists(st.integers(0, len(KEYS) - 1), unique=True, max_size=3).map(sorted),
    st.tuples(numbers_kept, numbers_kept, numbers_kept),
)
def test_what_may_go_is_old_and_nobody_s(
    home: Home,
    numbers: list[int],
    judged: set[int],
    serves: int | None,
    asked: list[int],
    counts: tuple[int, int, int],
) -> None:
    def work(rows: Connection) -> None:
        history = History(rows, numbers, judged)
        serving = history.serve(serves) if serves is not None else None
        # As a reprocess that has come to its second window asks: one generation each.
        todo = [
            (KEYS[number], sum(each.window == KEYS[number] for each in history.links) + (place > 0))
            for place, number in enumerate(asked)
        ]
        todo = [(key, max(1, generation)) for key, generation in todo]
        if todo:
            job_changes.submit(rows, request(home, "job", dict(todo)), "local", None)
        kept = dict(zip(KINDS, counts, strict=True))
        needed, expected = started_from(history, todo), set()
        for one in history.links:
            for kind in KINDS:
                new = one.window in history.windows[-kept[kind] :]
                uses = {
                    "checkpoint": one == serving or one in needed,
                    "saved_model": one == serving,
                    "scores": one not in history.judged
                    and one == newest(history.links, one.window),
                }
                if not new and not is_warm_start(one.window) and not uses[kind]:
                    expected.add(Named(one.window, one.generation, kind))
        found = may_go(rows, history.line, counts)
        assert {Named(each.window, each.generation, each.kind) for each in found} == expected
        assert len(found) == len(expected)
        forget_files(rows, found)
        assert may_go(rows, history.line, counts) == []
        left = rows.scalars(select(link_files.c.name)).all()
        assert len(left) == len(history.links) * len(KINDS) - len(expected)

    undone(Ledger(home, "ads").database, work)
