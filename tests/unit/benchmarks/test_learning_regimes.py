"""Regimes by parameters, the table of advice made from runs of them, and what advice loses."""

from __future__ import annotations

import numpy as np
import pytest
from advice_regret import Interval, held_out, line_of, regret, summary, without_level
from learning_figures import Run, figures_of
from learning_regimes import by_regime, table_of
from market_grid import SETTINGS
from replay import Replayed

from examples.demo.data.ad_market import generate
from forebay.config.specs.models import VARIANTS
from forebay.mixture.advice.regimes import RegimeTable, difference_of

SLOW, RARE = "100% known, slow drift", "49% known, rare"
GOOD = 1.0  # by how much positives score higher, in standard deviations


def one_run(regime: str, seed: int, better: dict[str, float], windows: int = 90) -> Run:
    random = np.random.default_rng(seed)
    rows = windows * 200
    converted = random.random(rows) < 0.3
    noise = random.normal(size=rows)
    columns = [name for name in VARIANTS if name not in {"batch+head", "batch+fnw"}]
    shift = np.array([GOOD + better.get(name, 0.0) for name in columns])
    logits = noise[:, np.newaxis] + converted[:, np.newaxis] * shift - 1.0
    return figures_of(
        regime,
        seed,
        Replayed(
            columns=(*columns, "mixture/memory"),
            windows=np.repeat(np.arange(windows), 200),
            converted=converted,
            scores=(1 / (1 + np.exp(-np.column_stack([logits, logits[:, :1]])))).astype(np.float32),
            learnt={},
            pauses=[],
            cpu_seconds=1.0,
        ),
        0.49 if regime == RARE else 1.0,
    )


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    better = {SLOW: {"stream": 0.5}, RARE: {"mixed+head": 0.5, "batch": 0.3}}
    return [one_run(name, seed, better[name]) for seed in (1, 2, 3, 4) for name in (RARE, SLOW)]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_regime_knows_the_share_that_it_is_named_by(name: str) -> None:
    setting = SETTINGS[name]
    shares = [
        generate(setting.market, seed, days=setting.days, hourly=50).share_known
        for seed in range(1, 6)
    ]
    assert np.mean(shares) == pytest.approx(float(name.partition("%")[0]) / 100, abs=0.08)
    assert setting.span.warm < setting.span.judged_from < setting.span.windows
    hours = setting.market.horizon.total_seconds() / 3600
    assert setting.horizon_windows * setting.window_hours == hours


def test_runs_are_regimes_with_what_is_known_of_them(runs: list[Run]) -> None:
    table = table_of(runs)
    facts = [(each.name, each.completeness, each.crowded, each.seeds) for each in table.regimes]
    assert facts == [(SLOW, 1.0, False, 4), (RARE, 0.49, False, 4)]
    assert [each.best.variant for each in table.regimes] == ["stream", "mixed+head"]
    assert {each.variant for each in table.regimes[0].variants} == set(runs[0].columns)
    again = RegimeTable.model_validate_json(table.model_dump_json(exclude_defaults=True))
    assert again == table
    slow = {each.variant: each for each in table.regimes[0].variants}
    mean, half = difference_of(slow["stream"], slow["batch"])
    aucs = [run.auc["stream"] - run.auc["batch"] for run in runs if run.regime == SLOW]
    assert mean == pytest.approx(np.mean(aucs), abs=1e-5)
    assert half is not None
    assert half > 0


def test_advice_and_gate_are_measured_against_the_best_of_the_other_half(runs: list[Run]) -> None:
    of = by_regime(runs)
    table = table_of(runs)
    assert [each.name for each in without_level(table, 0.45).regimes] == [SLOW]
    found = regret(of[RARE], held_out(of[RARE], [table, table]), line_of(RARE))
    assert (found.advised, found.best) == ("mixture+fnw", "mixed+head")
    aucs = [run.auc_of_half(1) for run in of[RARE]]
    lost = np.mean([auc["mixed+head"] - auc["mixture+fnw"] for auc in aucs])
    assert found.advice.mean == pytest.approx(lost)
    # The rivals hold no `mixed+head`: batch is the best of them.
    assert found.serves_most == "batch"
    assert 0 < found.served.mean < found.advice.mean
    said = summary("It", [found.advice, Interval(0.004, 0.002)])
    assert said.endswith("in 1 (50%) surely more than 0.003.")


def test_few_seeds_are_no_regime(runs: list[Run]) -> None:
    assert list(by_regime(runs[:6])) == [SLOW, RARE]
    assert by_regime(runs[:4]) == {}
