"""The example of a new project: a few days of generated rows, a source and a pipeline that run."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forebay.system.files import writing

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 3
ROWS_OF_A_DAY = 2_000
DATA = "data/example"
_USERS, _ITEMS, _SEED = 200, 30, 7


def write_example_rows(project: Path) -> list[Path]:
    """Parquet files of clicks, one for each day; the same rows each time. Returns their paths.

    Raises InfrastructureError when they cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = []
    for day in range(DAYS):
        start = FIRST_DAY + day * timedelta(days=1)
        path = project / DATA / f"date={start:%Y-%m-%d}" / "rows.parquet"
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pydict(_columns(start, day)), path)
        written.append(path)
    return written


def _columns(start: datetime, day: int) -> dict[str, list[object]]:
    """Rows of one day in the order of time: two items in three are clicked often."""
    chance = random.Random(_SEED + day)  # noqa: S311 - an example, no secret
    seconds = sorted(chance.random() * 86_400 for _ in range(ROWS_OF_A_DAY))
    users = [chance.randrange(_USERS) for _ in seconds]
    items = [chance.randrange(_ITEMS) for _ in seconds]
    return {
        "id": [day * ROWS_OF_A_DAY + number for number in range(ROWS_OF_A_DAY)],
        "at": [start + timedelta(seconds=round(each)) for each in seconds],
        "user": [f"u{user}" for user in users],
        "item": [f"i{item}" for item in items],
        "price": [round(chance.uniform(1, 50), 2) for _ in seconds],
        "clicked": [int(chance.random() < (0.4 if item % 3 else 0.05)) for item in items],
    }
