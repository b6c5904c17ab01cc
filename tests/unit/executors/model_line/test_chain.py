"""The model chain: what links hold, and what a window stands on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import request
from support.links import link
from support.model_lines import record

from forebay.errors import ConfigError, LineBusyError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import LEASE_NAME, line_holder, take_lease
from forebay.home.database.format import record_format
from forebay.home.paths import Home
from forebay.mixture.row_sums import RowSums


def test_what_a_window_trained_is_the_difference_of_the_models_sums() -> None:
    base = {"clicks": RowSums(rows=10, sum=2**63 - 1, sum_of_squares=0)}
    seen = {"clicks": RowSums(rows=12, sum=-(2**63) + 4, sum_of_squares=9)}
    one = link("2026-03-02", base_seen=base, seen=seen)
    assert one.trained("clicks") == RowSums(rows=2, sum=5, sum_of_squares=9)
    assert one.trained("absent") == RowSums()


def test_a_changed_model_is_refused_with_the_way_out(chain: ModelChain) -> None:
    with pytest.raises(ConfigError, match="--line NAME"):
        chain.require_same_fingerprint(link("2026-03-01"), "other")


def test_a_window_stands_with_the_warm_start_that_it_was_built_on(chain: ModelChain) -> None:
    def standing(window: str) -> list[tuple[str, str | None]]:
        return [(each.window, stale) for each, stale in chain.standing(window)]

    warm, first, second = "2026-02-01_2026-03-01", "2026-03-01", "2026-03-02"
    assert standing(first) == []
    record(chain, link(warm))
    record(chain, link(first, parent=(warm, 1)))
    record(chain, link(second, parent=(first, 1)))
    assert (standing(first), standing(second)) == ([(warm, None), (first, None)], [(second, None)])
    record(chain, link(first, generation=2, parent=(warm, 1)))
    assert standing(second) == [(second, f"stale (built on generation 1 of {first})")]


def test_a_holder_that_has_not_written_its_name_yet(tmp_path: Path) -> None:
    home = Home(tmp_path)
    record_format(home)
    lease = take_lease(request(home, "job-1", {}))
    (home.line("ads", "main") / LEASE_NAME).write_text("")
    assert line_holder(home, "ads", "main") == "another job"
    with pytest.raises(LineBusyError, match=r"^another job trains"):
        take_lease(request(home, "job-2", {}))
    lease.release()
