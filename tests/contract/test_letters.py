"""Dead letters of a pipeline: stored with the links of its lines, local until there is a link."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.letters import local_letters, stored_letters
from support.links import link
from support.model_lines import record

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import DataError, InfrastructureError
from forebay.executors.evaluation.pipeline_letters import pipeline_letters
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.dead_letters import DeadLetter
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.store.garbage import collect
from forebay.home.store.open import store_of

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"


@pytest.fixture
def chain(home: Home) -> ModelChain:
    database_of(home).transact(lambda _connection: None)  # before there are letters in it
    return ModelChain(home, "ads")


def trained(chain: ModelChain, window: str, generation: int, *rows: int) -> None:
    """A link of a window, with the letters of these rows; without any, it names none."""
    files = {"dead_letters": stored_letters(chain, window, generation, *rows)} if rows else {}
    record(chain, link(window, generation=generation, files=files))


def short(letters: Iterator[tuple[str, DeadLetter]]) -> list[tuple[str, str, int, object]]:
    return [(line, each.window, each.generation, each.location["row"]) for line, each in letters]


def test_letters_of_all_lines_are_told_by_window(home: Home, chain: ModelChain) -> None:
    assert short(pipeline_letters(home, "ads")) == []
    trial = ModelChain(home, "ads", "trial")
    trained(chain, SECOND, 1, 4, 5)
    trained(chain, FIRST, 1, 3)
    trained(chain, THIRD, 1)
    trained(trial, FIRST, 1, 3, 6)
    trained(ModelChain(home, "other"), FIRST, 1, 9)
    local_letters(trial, THIRD, 1, 8)
    local_letters(ModelChain(home, "other"), SECOND, 1, 9)
    assert short(pipeline_letters(home, "ads")) == [
        ("main", FIRST, 1, 3),
        ("main", SECOND, 1, 4),
        ("main", SECOND, 1, 5),
        ("trial", FIRST, 1, 3),
        ("trial", FIRST, 1, 6),
        ("trial", THIRD, 1, 8),
    ]
    assert short(pipeline_letters(home, "ads", FIRST)) == [
        ("main", FIRST, 1, 3),
        ("trial", FIRST, 1, 3),
        ("trial", FIRST, 1, 6),
    ]
    assert short(pipeline_letters(home, "ads", THIRD)) == [("trial", THIRD, 1, 8)]


def test_the_newest_link_counts_and_what_is_newer(home: Home, chain: ModelChain) -> None:
    trained(chain, FIRST, 1, 1)
    trained(chain, FIRST, 2, 2)
    for generation in (1, 2, 3):  # of the first two, a kill left the folders
        local_letters(chain, FIRST, generation, 10 + generation)
    assert short(pipeline_letters(home, "ads")) == [("main", FIRST, 2, 2), ("main", FIRST, 3, 13)]
    trained(chain, FIRST, 3)
    assert short(pipeline_letters(home, "ads")) == []


def test_letters_that_a_link_names_outlive_its_plan(home: Home, chain: ModelChain) -> None:
    trained(chain, FIRST, 1, 1)
    assert Ledger(home, "ads").forget(FIRST)
    assert collect(home).names == []
    assert short(pipeline_letters(home, "ads")) == [("main", FIRST, 1, 1)]


def test_damaged_letters_are_named(home: Home, chain: ModelChain) -> None:
    stored = stored_letters(chain, FIRST, 1, 1)
    record(chain, link(FIRST, files={"dead_letters": stored}))
    (file,) = store_of(home).tree(stored).iterdir()
    file.unlink()
    file.write_bytes(b"{}\n")
    with pytest.raises(DataError, match=file.name):
        list(pipeline_letters(home, "ads"))


def test_a_window_that_ends_meanwhile_is_asked_about_again(home: Home, chain: ModelChain) -> None:
    folder = local_letters(chain, FIRST, 1, 1, 2)
    letters = pipeline_letters(home, "ads")
    assert short(iter([next(letters)])) == [("main", FIRST, 1, 1)]
    trained(chain, FIRST, 1, 1, 2)
    assert not folder.exists()
    with pytest.raises(InfrastructureError, match=f"window {FIRST} of line 'main' .* run the"):
        list(letters)
    assert len(short(pipeline_letters(home, "ads"))) == 2


def test_a_window_that_ends_before_its_letters_are_read(home: Home, chain: ModelChain) -> None:
    local_letters(chain, FIRST, 1, 1)
    second = local_letters(chain, SECOND, 1, 2)
    letters = pipeline_letters(home, "ads")
    next(letters)
    shutil.rmtree(second)
    with pytest.raises(InfrastructureError, match=f"window {SECOND} of line 'main'"):
        list(letters)
