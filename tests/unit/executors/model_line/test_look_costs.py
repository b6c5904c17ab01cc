"""Looking at a line's last windows in SQLite costs the same for a long line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from support.links import judgement
from support.model_lines import record_link

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows import judgement_rows, line_rows, link_rows
from forebay.executors.model_line.staleness import stale_reason
from forebay.home.database.format import record_format
from forebay.home.database.open import database_of
from forebay.home.paths import Home

FEW, MANY = 10, 60
# So many instructions of SQLite's machine are one step here.
INSTRUCTIONS = 10
Look = Callable[[Connection, int | None, Link], object]


def line_of(folder: Path, windows: int) -> tuple[ModelChain, Link]:
    home = Home(folder)
    record_format(home)
    chain = ModelChain(home, "ads")
    for number in range(windows):
        last = record_link(chain, str(date(2026, 1, 1) + timedelta(number)), {"a": 9})
        chain.judge(last, judgement(last))
    return chain, last


def steps(chain: ModelChain, last: Link, look: Look) -> int:
    ticks = count()

    def tick() -> int:
        next(ticks)
        return 0

    def work(rows: Connection) -> object:
        driver: Any = rows.connection.dbapi_connection
        line = line_rows.line_id(rows, "ads", chain.line)
        driver.set_progress_handler(tick, INSTRUCTIONS)
        try:
            return look(rows, line, last)
        finally:
            driver.set_progress_handler(None, INSTRUCTIONS)

    assert database_of(chain.home).read(work)
    return next(ticks)


LOOKS: dict[str, Look] = {
    "links of some windows": lambda rows, line, last: link_rows.newest_links(
        rows, line, [last.window]
    ),
    "judgements of some links": lambda rows, line, last: judgement_rows.documents(
        rows, line, [last.name]
    ),
    "last judgements": lambda rows, line, last: judgement_rows.last_documents(rows, line, 5),
    "last links": lambda rows, line, last: link_rows.last_links(rows, line, 5),
    "whether a link is stale": lambda rows, line, last: [stale_reason(rows, line, last)],
    "the link before": link_rows.link_before,
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[ModelChain, Link]]:
    return [line_of(tmp_path_factory.mktemp("home"), windows) for windows in (FEW, MANY)]


@pytest.mark.parametrize("name", LOOKS)
def test_a_long_line_makes_no_look_longer(name: str, lines: list[tuple[ModelChain, Link]]) -> None:
    of_few, of_many = (steps(chain, last, LOOKS[name]) for chain, last in lines)
    assert of_many <= of_few + FEW
