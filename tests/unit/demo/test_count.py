"""The demo's own count: right if all is well, and it notices what is wrong."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import independent
from support.budgets import imported_modules

from examples.demo import count
from examples.demo.count import Stored, disagreements, lost_and_repeated, row_sums

DAY = 86_400_000_000


def stored(seed: int, rows: int = 300) -> Stored:
    random = np.random.default_rng(seed)
    ids = random.integers(0, 2**64, rows, dtype=np.uint64)
    return Stored(ids, random.integers(0, 3 * DAY, rows), random.random(rows) < 0.9)


def summary_of(data: dict[str, Stored]) -> dict[str, Any]:
    windows = []
    for day in range(3):
        sources = {}
        for name, rows in data.items():
            inside = (rows.at >= day * DAY) & (rows.at < (day + 1) * DAY)
            trained = int((inside & rows.labelled).sum())
            sources[name] = {
                "data_from": f"1970-01-0{day + 1}T00:00:00+00:00",
                "data_to": f"1970-01-0{day + 2}T00:00:00Z",
                "planned_rows": int(inside.sum()) if day else None,
                "served_rows": int(inside.sum()),
                "trained_rows": trained,
                "dead_letter_rows": int(inside.sum()) - trained,
            }
        windows.append({"window": f"1970-01-0{day + 1}", "sources": sources})
    seen = {name: row_sums(rows.ids[rows.labelled]) for name, rows in data.items()}
    return {"warm_start": windows[0], "windows": windows[1:], "seen": seen}


DATA = {"a": stored(1), "b": stored(2)}


def test_it_imports_nothing_else_of_forebay() -> None:
    names = imported_modules(Path(count.__file__))
    assert "numpy" in names
    assert not {"forebay", "examples"} & names


def test_a_true_summary_agrees_and_lost_and_repeated_rows_do_not_cancel_out() -> None:
    assert disagreements(summary_of(DATA), DATA) == []
    assert lost_and_repeated(summary_of(DATA), DATA) == (0, 0)
    summary = summary_of(DATA)
    summary["seen"]["a"]["rows"] -= 2
    summary["seen"]["b"]["rows"] += 3
    assert lost_and_repeated(summary, DATA) == (2, 3)


@pytest.mark.parametrize("key", ["planned_rows", "served_rows", "trained_rows", "dead_letter_rows"])
def test_a_wrong_count_is_named(key: str) -> None:
    summary = summary_of(DATA)
    summary["windows"][1]["sources"]["b"][key] += 1
    (line,) = disagreements(summary, DATA)
    assert line.startswith(f"window 1970-01-03, source b: {key} is ")


def test_a_row_trained_twice_in_place_of_another_shows_in_the_sums() -> None:
    summary = summary_of(DATA)
    other = copy.deepcopy(DATA)
    labelled = np.flatnonzero(other["a"].labelled)
    other["a"].ids[labelled[0]] = other["a"].ids[labelled[1]]
    summary["seen"]["a"] = row_sums(other["a"].ids[other["a"].labelled])
    (line,) = disagreements(summary, DATA)
    assert line.startswith("source a: the model has seen {'rows': ")


def test_ids_and_sums_equal_the_other_independent_definition() -> None:
    ids = count.row_ids("day=1/part.parquet", np.arange(50))
    other = independent.row_ids("day=1/part.parquet", np.arange(50))
    np.testing.assert_array_equal(ids.view(np.int64), other)
    assert row_sums(ids) == independent.sums([other])
    nothing = np.empty(0, dtype=np.uint64)
    assert row_sums(nothing) == {"rows": 0, "sum": 0, "sum_of_squares": 0}
