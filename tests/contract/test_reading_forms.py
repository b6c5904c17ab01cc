"""The four forms of a reading give the stored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support import independent
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, ads_project

from forebay.errors import UsageError
from forebay.reading import WindowRows, read_windows

ROWS = 3_000
DAYS = 2
Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("project")
    return ads_project(root, days=DAYS, rows=ROWS, pipeline=ads_pipeline("towers"))


def of_arrow(rows: WindowRows) -> Iterator[Columns]:
    for batch in rows.arrow():
        batch.validate(full=True)
        yield {name: batch.column(name).to_pylist() for name in batch.schema.names}


def as_arrays(tensors: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: (each.row_splits.numpy(), each.values.numpy())
        if hasattr(each, "row_splits")
        else each.numpy()
        for name, each in tensors.items()
    }
    return {**found, "feed": found["feed"].decode()}


def as_columns(rows: WindowRows, arrays: dict[str, Any]) -> Columns:
    lists = {
        name: [pair[1][a:b].tolist() for a, b in pairwise(pair[0])]
        for name, pair in arrays.items()
        if name.startswith("feature.")
    }
    plain = {name: each.tolist() for name, each in arrays.items() if isinstance(each, np.ndarray)}
    source = [rows.sources[place] for place in plain["source"]]
    return {**plain, **lists, "source": source, "feed": [arrays["feed"]] * len(source)}


FORMS: dict[str, Callable[[WindowRows], Iterator[Columns]]] = {
    "arrow": of_arrow,
    "numpy": lambda rows: (as_columns(rows, each) for each in rows.numpy()),
    "tensors": lambda rows: (as_columns(rows, as_arrays(each)) for each in rows.tensors()),
    "as_dataset": lambda rows: (as_columns(rows, as_arrays(each)) for each in rows.as_dataset()),
}


def read(project: Project, form: str) -> dict[int, tuple[Any, ...]]:
    """Every row by its id; NaN is None."""
    found: dict[int, tuple[Any, ...]] = {}
    last = f"2026-03-{DAYS:02d}"
    with read_windows(project.root / "config", "ads", first="2026-03-01", last=last) as rows:
        for columns in FORMS[form](rows):
            names = sorted(columns)
            for row in zip(*(columns[name] for name in names), strict=True):
                values = tuple(None if str(each) == "nan" else each for each in row)
                row_id = int(row[names.index("row_id")])
                assert row_id not in found, "a row came twice"
                found[row_id] = (tuple(names), values)
        assert rows.window == last
        assert rows.dead_rows == {}
        with pytest.raises(UsageError, match="all rows were read"):
            next(iter(FORMS["numpy"](rows)))
    return found


def wanted(project: Project) -> independent.Sums:
    """Sums of both windows, from the files alone."""
    first = int(FIRST_DAY.timestamp() * 1000)
    batch = [FIRST_DAY + (day - 1) * DAY for day in range(DAYS)]
    files = [f"date={each:%Y-%m-%d}/*.parquet" for each in batch]
    history = [independent.parquet_sums(project.files, files=each) for each in files]
    return independent.added(
        *history, independent.log_sums(project.log, first, first + DAYS * 86_400_000)
    )


def test_every_form_gives_the_stored_rows_once(project: Project) -> None:
    found = {form: read(project, form) for form in FORMS}
    for rows in found.values():
        ids: npt.NDArray[np.int64] = np.array(list(rows), np.int64)
        assert independent.sums([ids]) == wanted(project)
        assert rows == found["arrow"]
    names, _ = next(iter(found["arrow"].values()))
    assert {"source", "feed", "row_id", "event_id", "label", "event_time", "wait"} < set(names)
    assert {"dense", "ids", "feature.tags"} < set(names)


def test_one_form_continues_where_another_stopped(project: Project) -> None:
    config, found = project.root / "config", []
    with read_windows(config, "ads", first="2026-03-01", last="2026-03-01") as rows:
        for number, batch in enumerate(rows.arrow()):
            found.append(batch.column("row_id").to_numpy())
            if number == 1:
                break
        tensors = next(iter(rows.as_dataset()))
        found.append(tensors["row_id"].numpy())
        found += [arrays["row_id"] for arrays in rows.numpy()]  # type: ignore[misc]
    ids = np.concatenate(found)
    assert len(ids) == len(np.unique(ids)) == 2 * ROWS


def test_names_say_where_features_are(project: Project) -> None:
    rows = read_windows(project.root / "config", "ads", first="2026-03-01", last="2026-03-01")
    assert rows.features.dense == ("price",)
    assert [(each.name, each.cardinality) for each in rows.features.ids] == [
        ("user", 1000),
        ("mobile", 3),
    ]
    assert [each.name for each in rows.features.lists] == ["tags"]
    assert set(rows.sources) == {"history", "clicks"}
