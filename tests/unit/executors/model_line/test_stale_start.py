"""Windows that would be trained on top of stale models, and what mends it."""

from __future__ import annotations

import pytest
from support.links import window_of
from support.scripted_runs import FIRST, SECOND, THIRD, Runs
from support.there import there

from forebay.errors import ConfigError
from forebay.executors.model_line.start import stale_start

FOURTH = "2026-03-04"


@pytest.mark.guarantee(
    "a window would start from a stale model",
    "`forebay run` refuses it, with the command that repairs the line; Airflow trains it with a"
    " warning, unless `schedule.on_stale` is `refuse`",
)
def test_a_run_over_a_stale_model_is_refused(runs: Runs) -> None:
    for day in range(3):
        runs.trained(day)
    runs.run(FIRST, FIRST, runs.succeeds, reprocess=True)
    repair = f"forebay run ads --from {SECOND} --to {FOURTH} --reprocess"
    with pytest.raises(ConfigError, match=f"model of window {THIRD}, .*stale .*: {repair}. To"):
        runs.run(FOURTH, FOURTH)
    assert runs.chain.newest(FOURTH) is None
    runs.run(SECOND, FOURTH, runs.succeeds, reprocess=True)
    assert runs.chain.stale_reasons() == {}


def test_a_model_between_two_windows_becomes_stale(runs: Runs) -> None:
    for day in range(3):
        runs.trained(day)
    assert runs.stages.ledger.forget(SECOND)
    windows = [window_of(key) for key in (SECOND, FOURTH)]
    found = there(stale_start(runs.chain, windows))
    assert found.reason.endswith(f"stale once window {SECOND} is trained again")
    assert found.command == f"forebay run ads --from {SECOND} --to {FOURTH} --reprocess"
    assert stale_start(runs.chain, windows[:1]) is None
