"""The model chain: parents, generations, staleness and publication."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support import links
from support.links import window_of
from support.model_lines import export, record
from support.there import there

from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.mixture.row_sums import RowSums

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def link(window: str, generation: int, parent: tuple[str, int] | None, rows: int = 10) -> Link:
    before = 0 if parent is None else rows - 10
    counts = ({"clicks": rows}, {"clicks": before})
    return links.link(window, *counts, generation=generation, parent=parent, step=rows, steps=10)


def three_windows(chain: ModelChain) -> None:
    record(chain, link("2026-03-01", 1, None))
    record(chain, link("2026-03-02", 1, ("2026-03-01", 1), 20))
    record(chain, link("2026-03-03", 1, ("2026-03-02", 1), 30))


def test_an_empty_line_has_no_windows_and_no_parent(chain: ModelChain) -> None:
    assert chain.windows() == []
    assert chain.before(window_of("2026-03-01")) is None
    assert chain.published() is None


def test_the_parent_is_the_newest_generation_of_the_window_before(chain: ModelChain) -> None:
    three_windows(chain)
    record(chain, link("2026-03-02", 2, ("2026-03-01", 1), 20))
    before = there(chain.before(window_of("2026-03-03")))
    assert (before.window, before.generation) == ("2026-03-02", 2)


def test_publishing_never_moves_to_an_earlier_or_stale_model(chain: ModelChain) -> None:
    three_windows(chain)
    third = there(chain.newest("2026-03-03"))
    model = export(chain, third)
    assert not chain.publish(third, NOW)
    again = link("2026-03-02", 2, ("2026-03-01", 1), 20)
    record(chain, again)
    assert chain.publish(again, NOW)
    assert chain.publish(third, NOW)
    published = there(chain.published())
    assert (published.window, published.path) == ("2026-03-03", model)


def test_what_a_window_trained_is_the_difference_of_the_models_sums() -> None:
    one = link("2026-03-02", 1, ("2026-03-01", 1), 20).model_copy(
        update={
            "base_seen": {"clicks": RowSums(rows=10, sum=2**63 - 1, sum_of_squares=0)},
            "seen": {"clicks": RowSums(rows=12, sum=-(2**63) + 4, sum_of_squares=9)},
        }
    )
    assert one.trained("clicks") == RowSums(rows=2, sum=5, sum_of_squares=9)
    assert one.trained("absent") == RowSums()


def test_rows_that_paradigms_learnt_are_kept_by_source(chain: ModelChain) -> None:
    learnt = {"clicks": {"mixture": 10, "batch": 0}}
    record(chain, link("2026-03-01", 1, None).model_copy(update={"learnt": learnt}))
    assert there(chain.newest("2026-03-01")).learnt == learnt


def test_a_generation_counts_only_once_it_reached_its_end(chain: ModelChain) -> None:
    three_windows(chain)
    chain.folder("2026-03-03", 4).mkdir(parents=True)
    assert [(each.window, each.generation) for each in chain.links()][-1] == ("2026-03-03", 1)


def test_a_changed_model_is_refused_with_the_way_out(chain: ModelChain) -> None:
    with pytest.raises(ConfigError, match="--line NAME"):
        chain.require_same_fingerprint(link("2026-03-01", 1, None), "other")


def test_a_window_stands_with_the_warm_start_that_it_was_built_on(chain: ModelChain) -> None:
    def standing(window: str) -> list[tuple[str, str | None]]:
        return [(each.window, stale) for each, stale in chain.standing(window)]

    warm, first, second = "2026-02-01_2026-03-01", "2026-03-01", "2026-03-02"
    assert standing(first) == []
    record(chain, link(warm, 1, None))
    record(chain, link(first, 1, (warm, 1), 20))
    record(chain, link(second, 1, (first, 1), 30))
    assert (standing(first), standing(second)) == ([(warm, None), (first, None)], [(second, None)])
    record(chain, link(first, 2, (warm, 1), 20))
    assert standing(second) == [(second, f"stale (built on generation 1 of {first})")]
