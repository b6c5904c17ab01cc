"""Whatever is changed in a declaration, and changed back: no row is left out that nobody names.

Runs, reprocesses, refusals, forgotten windows, changes of keys of sources and of the dataset, late
rows, partitions that come and go, two lines, in random sequences. After each operation an
independent count says which rows each model has, and what a refusal may not change is as it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from support.line_sequences.declared import Change, Declared
from support.line_sequences.judge import Judge, may_have_rows, names_loss
from support.line_sequences.world import World
from support.python_code import require_green
from support.sequences.declared import DAY, day, key
from support.sequences.judge import Borders, Fault

pytestmark = pytest.mark.timeout(600)


def test_no_row_is_lost_in_silence() -> None:
    """Always the same sequences; `make chaos` draws others."""
    told = require_green("support.line_sequences", "--sequences", "25", seed=5000, seconds=550)
    done = json.loads(told)["operations"]
    for name in ("run the next windows", "reprocess", "change", "undo", "forget", "follow why"):
        assert done[name], name


def test_why_advises_no_range_that_another_window_of_it_forbids() -> None:
    """Event times of a source were declared by another column since: found by `make chaos`."""
    require_green("support.line_sequences", "--sequences", "1", seed=779387100, seconds=100)


def test_hours_that_were_trained_are_no_windows_of_a_line_of_days(tmp_path: Path) -> None:
    declared = Declared(tmp_path)
    assert declared.has(key(2), (day(2), day(3)))
    assert not declared.has(key(2), (day(2), day(2.5))), "a day of another zone"
    hour = f"{key(2)}T00", (day(2), day(2) + DAY / 24)
    assert not declared.has(*hour)
    declared.changes.append(Change(("pipeline", "dataset", "window"), "1h"))
    declared.move_log("data/clicks")
    assert declared.has(*hour)
    assert not declared.has(key(2), (day(2), day(3)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("source daily has 0 rows now, and had 4 when it was trained (no rows)", True),
        ("source daily has 1,000 rows now, and had 999 when it was trained", False),
        ("its files have changed since it was planned: 1 removed (f1.parquet)", True),
        ("it is trained, but stale (built on generation 1 of 2026-03-02)", False),
    ],
)
def test_how_a_loss_is_told(text: str, *, told: bool) -> None:
    assert names_loss(text) == told


def test_a_partition_that_is_gone_has_no_rows_where_that_was_decided_before() -> None:
    known = {day(1): 8, day(2): 8, day(3): 9}
    assert not may_have_rows(known, (day(1), day(2)))
    assert may_have_rows(known, (day(2), day(3))), "planned rows"
    assert may_have_rows(known, (day(3), day(4))), "what comes later is not known"
    assert not may_have_rows(None, (day(3), day(4))), "nobody has ever seen it"


@pytest.mark.parametrize(("log", "offset"), [("data/clicks", 0), ("data/moved", 8)])
def test_borders_of_a_log_that_was_moved_are_those_of_a_new_one(
    tmp_path: Path, log: str, offset: int
) -> None:
    """Rows of a partition that came after windows of its own log are in the next window."""
    world = World(tmp_path, Random(1))
    world.clicks.write("2", day(1), 4)
    known = Borders({("data/clicks", "0"): {day(5): 24}})
    judge = Judge(world, Declared(tmp_path), borders=known)
    at, before = (int(day(number).timestamp()) * 10**6 for number in (2, 5))
    for found in (0, 8):
        borders = [("data/clicks", "0", before, 24), (log, "2", at, found)]
        facts = {"borders": borders, "plans": [], "lines": {}}
        if found == offset:
            judge.look(facts, lambda _line, _link: pytest.fail("nothing is trained"))
            return
        with pytest.raises(Fault, match="a border is elsewhere"):
            judge.look(facts, lambda _line, _link: pytest.fail("nothing is trained"))
