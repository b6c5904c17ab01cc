"""Two labels, each with its own delay head: a killed trainer leaves no trace in either of them.

More kills, at random places, are in tests/chaos/test_label_join_kills.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.kills import kill_role, running, summary_of
from support.projects import Project
from support.same_bytes import (
    DAY_ROWS,
    HOUR,
    HOUR_ROWS,
    NULL_EVERY,
    SILENT_FROM,
    SILENT_TO,
    WINDOWS,
    Runs,
    arguments,
    delay_heads,
    held_rows,
    judgements,
    metrics,
    wait_until,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs.of(tmp_path_factory.mktemp("two"), sale=True)


@pytest.fixture(scope="module")
def killed(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Judged when two windows have ended and again with the last; a trainer dies in each run.

    The middle one has no step without both heads: half of its batch rows found a copy.
    """
    made = runs.begin(tmp_path_factory.mktemp("killed") / "home")
    for first, last in ((WINDOWS[0], WINDOWS[1]), (WINDOWS[2], WINDOWS[2])):
        with running(made, *arguments(made, first, last)) as run:
            wait_until(made, last, DAY_ROWS, run)
            kill_role(made, "trainer")
            output, _ = run.communicate(timeout=200)
        assert run.returncode == 0, output
        assert summary_of(made.home / "summary.json")["restarts"]["trainer"] == 1
    made.forebay(*arguments(made))  # trains nothing: what is said of all of them
    return made


def test_both_heads_learn_and_a_guard_marks_what_it_holds_of_its_own_label(runs: Runs) -> None:
    """Else the other tests would compare nothing; what a row does not say is counted."""
    for head in ("delay_head_click", "delay_head_sale"):
        first, *others = delay_heads(runs.unkilled, head)
        assert first
        for later in others:
            assert any(not np.array_equal(first[name], later[name]) for name in first)
    for learnt, *_ in metrics(runs.unkilled)[-1]:
        assert "click/label_not_known" not in learnt["history"]
        assert learnt["history"]["sale/label_not_known"] > DAY_ROWS // NULL_EVERY
    # What the join of the last window leaves out is part of what is compared.
    silent = SILENT_TO - SILENT_FROM
    most = silent // (2 * HOUR) * HOUR_ROWS
    held = held_rows(runs.unkilled, WINDOWS[1])
    assert most / 2 < len(held) < most
    assert held_rows(runs.unkilled, WINDOWS[1], "sale") == []
    learnt = metrics(runs.unkilled)[-1][1][0]["clicks"]
    assert learnt["click:mixture+head/paused"] == len(held)


@pytest.mark.guarantee(
    "the trainer dies among joined rows of two labels and steps of their delay heads",
    "nothing; scores, row sums, figures of both labels and every variable are those of an "
    "undisturbed run, even if each window was judged as soon as it ended; read again: as for "
    "the trainer",
)
def test_scores_rows_and_every_variable_are_those_of_the_run_that_nobody_killed(
    runs: Runs, killed: Project
) -> None:
    runs.assert_same(killed)


def test_a_window_that_was_judged_when_it_ended_is_judged_as_one_of_many(
    runs: Runs, killed: Project
) -> None:
    """The second was partial then; its judgement was completed by the window after."""
    assert repr(judgements(killed)) == repr(judgements(runs.unkilled))
    assert repr(judgements(killed)) == repr(metrics(killed)[-1])
    for _, _, _, event, labels in judgements(killed)[:2]:
        assert event["complete"]
        assert labels["sale"]["event"]["complete"]
