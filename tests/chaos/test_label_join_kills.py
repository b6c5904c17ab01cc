"""Kills while labels are joined and a head learns how late they are: nothing of it shows.

A killed run has to end with the very bytes of one that was left alone, of one label and of two.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kills import kill_role, kill_tree, running, summary_of, wait_for_ends
from support.projects import DAY, FIRST_DAY, Project
from support.same_bytes import (
    DAY_ROWS,
    WAIT_HOURS,
    WINDOWS,
    Runs,
    arguments,
    delay_heads,
    events,
    scores,
    wait_until,
)
from support.truth_rows import stored_of

from forebay.config.load import load_project
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.label_join.join import LabelJoin
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.scores import SCORES_FOLDER, Segments
from forebay.home.paths import Home
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
END_SECONDS = 400.0


@pytest.fixture(scope="module")
def one_label(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs.of(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def two_labels(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs.of(tmp_path_factory.mktemp("two"), sale=True)


@pytest.fixture(scope="module")
def unkilled(one_label: Runs) -> Project:
    return one_label.unkilled


@pytest.fixture(params=["one_label", "two_labels"])
def runs(request: pytest.FixtureRequest) -> Runs:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Runs)
    return found


def test_batch_rows_find_their_copies_in_earlier_windows_and_in_their_own(
    unkilled: Project,
) -> None:
    """Of the events of March 2nd those before 11:00 were published that day, others on the 3rd.

    In the run of the 3rd an event of hour h is served in hour h, and its copy h + 13 - 24 hours
    after midnight: 11 hours before it, which is more than enough.
    """
    loaded = load_project(unkilled.root / "config")
    spec = loaded.pipeline("ads")
    home = Home(unkilled.home)
    chain = ModelChain(home, "ads")
    join = LabelJoin(chain, spec, loaded.sources)
    plan = Ledger(home, "ads").plan(WINDOWS[2], 1)
    join.begin(plan, chain.newest(WINDOWS[1]))
    folder = stored_of(unkilled.home, "ads", WINDOWS[2], SCORES_FOLDER)
    assert folder is not None
    join.resume(plan, folder)
    table = events(FIRST_DAY + DAY)
    labels = np.asarray(table.column("clicked"), np.float32)
    rows = len(labels)
    found = join.joined(
        Minibatch(
            feed="batch",
            row_ids=np.arange(rows),
            event_ids=event_ids(unkilled, WINDOWS[2]),
            sources=np.zeros(rows, np.int32),
            labels=labels,
            dense=np.zeros((rows, 0), np.float32),
            ids=np.zeros((rows, 0), np.int64),
            event_times=np.array([to_us(at) for at in table.column("at").to_pylist()]),
        )
    )
    assert found.waits is not None
    assert found.known is not None
    minutes = np.array([at.minute for at in table.column("at").to_pylist()])
    np.testing.assert_allclose(found.waits, (WAIT_HOURS + 0.5) * 3600 - minutes * 60)
    positive = labels > 0.5
    known = np.asarray(table.column("delay")) < WAIT_HOURS
    np.testing.assert_array_equal(found.known[positive], known[positive])
    assert 0.3 < found.known[positive].mean() < 0.9


def test_the_head_learns_from_what_was_found(unkilled: Project) -> None:
    """In the first window no batch row has a copy: the stream begins with it."""
    first, *others = delay_heads(unkilled)
    assert first
    for later in others:
        assert any(not np.array_equal(first[name], later[name]) for name in first)


def event_ids(made: Project, window: str) -> Any:
    segments = Segments(window, stored_of(made.home, "ads", window, SCORES_FOLDER))
    table = segments.labels()
    assert table is not None
    times = table.column("event_time").to_numpy()
    assert np.all(np.diff(times) >= 0)
    return table.column("event_id").to_numpy()


def test_events_of_earlier_windows_are_judged_by_the_models_of_their_time(
    unkilled: Project,
) -> None:
    """Nothing had ended before the events of the first two days, and the third day's still come."""
    summary = summary_of(unkilled.home / "summary.json")
    blocks = [window["event"] for window in summary["windows"]]
    assert [block["judged"] for block in blocks] == [0, DAY_ROWS, 0]
    assert [block["unjudged"]["before"] for block in blocks] == [DAY_ROWS, 0, 0]
    assert [block["complete"] for block in blocks] == [True, True, False]
    judged = scores(unkilled)[f"{WINDOWS[2]}//judged"]
    assert {row["link"] for row in judged} == {f"{WINDOWS[0]} generation 1"}


def test_two_runs_that_nobody_kills_are_the_same(runs: Runs, tmp_path: Path) -> None:
    """What the other tests stand on."""
    made = runs.begin(tmp_path / "home")
    made.forebay(*arguments(made), timeout_seconds=END_SECONDS)
    runs.assert_same(made)


@pytest.mark.guarantee(
    "the trainer dies while rows are judged",
    "nothing; the same links judge the same events, and figures are equal; read again: as for "
    "the trainer",
)
@pytest.mark.parametrize("window", WINDOWS[1:])
def test_a_trainer_that_dies_twice(runs: Runs, tmp_path: Path, window: str) -> None:
    made = runs.begin(tmp_path / "home")
    shares = sorted(random.uniform(0.02, 0.95) for _ in range(2))
    with running(made, *arguments(made)) as run:
        for share in shares:
            wait_until(made, window, int(share * 2 * DAY_ROWS), run)
            wait_for_ends([kill_role(made, "trainer")])
        output, _ = run.communicate(timeout=END_SECONDS)
    assert run.returncode == 0, f"killed at {shares}: {output}"
    assert summary_of(made.home / "summary.json")["restarts"]["trainer"] == 2, shares
    runs.assert_same(made)


def test_everything_dies_as_a_window_begins(runs: Runs, tmp_path: Path) -> None:
    """While the join reads earlier windows, or just after."""
    made = runs.begin(tmp_path / "home")
    with running(made, *arguments(made)) as run:
        wait_until(made, WINDOWS[1], 1, run)
        kill_tree(made, run)
    made.forebay(*arguments(made), timeout_seconds=END_SECONDS)
    runs.assert_same(made)
