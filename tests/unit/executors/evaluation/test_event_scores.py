"""Event scores of windows, whose labels come with later windows: partial first, then completed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from support.judged import Event, write_judged
from support.links import judgement, window_of
from support.model_lines import record_link
from support.stages import pipeline

from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.evaluation import range_summary
from forebay.executors.evaluation.run_summary import RunFacts
from forebay.executors.evaluation.summary import opinion
from forebay.executors.evaluation.windows import complete_judgements, evaluate
from forebay.executors.evaluation.words import evaluation_words, event_words
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import Link
from forebay.home.store.open import store_of
from forebay.mixture.metrics.figures import EventBlock
from forebay.system.instants import to_us

KEYS = [f"2026-03-0{day}" for day in range(1, 6)]
COLUMNS = ("mixture", "stream", "mixture/memory", "mixture@1", "stream@1", "mixture@2", "stream@2")
ROWS = 60


def spec(**more: object) -> PipelineSpec:
    """Batch rows come a day and a half later: half of a day's with each of two windows."""
    dataset = {
        "streams": {"a": {"sources": ["a"], "offset": "36h"}, "b": {"sources": ["b"]}},
        "slices": ["kind"],
        "features": {"kind": {"encode": "vocabulary", "values": ["red"]}},
        **more,
    }
    return pipeline(("a", "b"), dataset=dataset, model={"kind": "towers"})


def events(day: int) -> list[Event]:
    """Of one day, an hour's third each."""
    start = to_us(window_of(KEYS[day]).start) / 3_600_000_000
    numbers = range(day * ROWS, (day + 1) * ROWS)
    return [(one, start + (one % ROWS) * 0.4, one % 3 == 0) for one in numbers]


def train(chain: ModelChain, folder: Path, day: int) -> Link:
    """What the window of a day leaves: rows of a day and a half ago judged, its own ones fresh."""
    window = window_of(KEYS[day])
    since, until = (to_us(at) / 3_600_000_000 - 36 for at in (window.start, window.end))
    come = [one for other in range(day) for one in events(other) if since <= one[1] < until]
    random = np.random.default_rng(day)
    scores = {
        event: np.clip(0.3 * label + random.uniform(0.05, 0.6, len(COLUMNS)), 0, 1).tolist()
        for event, _, label in come
    }
    write_judged(folder / KEYS[day], COLUMNS, come, scores, fresh=events(day), source=day % 2)
    stored = store_of(chain.home).put_tree("models", "scores", folder / KEYS[day])
    return record_link(chain, KEYS[day], {"a": 2}, files={"scores": stored})


def block(chain: ModelChain, day: int) -> EventBlock | None:
    return (
        evaluate(spec(), chain, list(chain.newest_of([KEYS[day]]).values()))
        .windows[KEYS[day]]
        .event
    )


def test_partial_windows_are_in_no_pool_and_no_verdict(chain: ModelChain, tmp_path: Path) -> None:
    links = [train(chain, tmp_path, day) for day in range(4)]
    found = evaluate(spec(), chain, links)
    blocks = [found.windows[key].event for key in KEYS[:4]]
    assert [each.complete for each in blocks] == [True, True, False, False]
    assert [each.judged for each in blocks] == [ROWS, ROWS, ROWS // 2, 0]
    assert [each.rows for each in blocks] == [ROWS] * 4
    answers = blocks[2].answers
    assert list(answers) == ["mixture", "stream", "mixture/memory"]
    so_far = f"{answers['mixture'].auc:.3f} so far, {ROWS // 2} of {ROWS} rows judged"
    assert answers["mixture"].words == so_far
    pooled = found.pooled
    assert (pooled.event.windows, pooled.event.judged) == (2, 2 * ROWS)
    assert pooled.scored_at == "event"
    only = evaluate(spec(), chain, links[:2]).pooled
    assert (only.event, only.differences) == (pooled.event, pooled.differences)
    (difference,) = pooled.differences
    assert (difference.a, difference.b, difference.seeds) == ("mixture", "stream", 3)
    assert difference.words.endswith("rows and 3 seeds)")
    early = evaluate(spec(), chain, links[2:]).pooled
    assert (early.event.windows, early.scored_at) == (0, "publication")


@pytest.mark.guarantee(
    "labels come with later windows", "nothing; a window judged later equals one judged at once"
)
def test_a_window_judged_later_equals_one_judged_at_once(chain: ModelChain, tmp_path: Path) -> None:
    later, at_once = [], ModelChain(chain.home, "ads", "other")
    for day in range(5):
        train(chain, tmp_path / "one", day)
        later.append(block(chain, max(0, day - 2)))
    links = [train(at_once, tmp_path / "other", day) for day in range(5)]
    found = evaluate(spec(), at_once, links)
    assert [found.windows[key].event for key in KEYS[:3]] == later[2:]


def test_a_run_advises_by_what_it_has_completed(
    chain: ModelChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete: list[int] = []

    def advise(_: PipelineSpec, windows: Collection[Judgement], *_more: object) -> None:
        complete.append(sum(one.event is not None and one.event.complete for one in windows))

    monkeypatch.setattr(range_summary, "advice_on_windows", advise)
    for day in range(4):
        train(chain, tmp_path, day)
        range_summary.judge_windows(spec(), chain, [KEYS[day]], RunFacts())
    assert complete == [0, 0, 1, 2], "windows whose last labels came with the run count"


def test_judgements_are_completed_in_the_database(chain: ModelChain, tmp_path: Path) -> None:
    def judge(day: int) -> None:
        link = train(chain, tmp_path, day)
        found = evaluate(spec(), chain, [link])
        chain.judge(link, opinion(judgement(link, steps=7), None, None, found))
        links.append(link)

    links: list[Link] = []
    judge(0)
    for day, wanted in ((1, []), (2, [KEYS[0]]), (3, [KEYS[1]])):
        judge(day)
        assert list(complete_judgements(spec(), chain, links[-1], links[-1])) == wanted
        assert complete_judgements(spec(), chain, links[-1], links[-1]) == {}
    stored = chain.judgements(links)
    assert stored[KEYS[0]].event == block(chain, 0)
    assert stored[KEYS[0]].steps == 7
    assert [stored[key].event.complete for key in KEYS[:4]] == [True, True, False, False]
    first, *_ = event_words(stored[KEYS[0]])
    assert first.endswith(f", {ROWS} rows judged")
    last, *_ = event_words(stored[KEYS[3]])
    assert last == f"mixture none so far, 0 of {ROWS} rows judged"
    assert list(event_words(judgement())) == []
    assert evaluation_words(stored[KEYS[3]])[-1] == f"event AUC of {last}"


def at_publication(words: str = "", true: float | None = 0.67) -> dict[str, object]:
    figures = {"auc_fresh": 0.59, "rows": 1_935, "auc_true": true, "joined_rows": 1_420}
    return {**figures, "words_true": words}


def test_every_figure_says_on_how_many_rows_and_whether_more_may_come() -> None:
    words = "0.620 so far, 420 of 1,935 rows judged"
    metrics = {"mixture": at_publication(words), "stream": at_publication()}
    answers = {
        "mixture": {"words": "none so far, 0 of 515 rows judged"},
        "stream": {"words": "", "auc": 0.6512, "rows": 915},
        "mixture/memory": {"words": "a tower"},
    }
    own = {"metrics": {"mixture": at_publication(true=None)}, "event": None}
    event = {"answers": answers, "complete": False}
    found = judgement(metrics=metrics, event=event, labels={"sale": own})
    assert evaluation_words(found) == [
        "AUC of sale:mixture at publication 0.590, 1,935 rows, by labels as known then",
        "AUC of stream at publication 0.670, 1,420 rows judged",
        "AUC of mixture at publication 0.590 so far, 1,935 rows, by labels as known then",
        "AUC of mixture at publication 0.620 so far, 420 of 1,935 rows judged",
        "event AUC of stream 0.651, 915 rows judged",
        "event AUC of mixture none so far, 0 of 515 rows judged",
    ]
    assert evaluation_words(judgement()) == []


def test_figures_by_source_and_slice_say_one_class(chain: ModelChain, tmp_path: Path) -> None:
    first, *_ = [train(chain, tmp_path, day) for day in range(3)]
    found = evaluate(spec(), chain, [first]).windows[KEYS[0]].event
    assert set(found.sources) == {"a", "b"}
    assert sum(one["mixture"].rows for one in found.sources.values()) == ROWS
    slices = found.slices["kind"]
    rows = {name: one["stream"].rows for name, one in slices.items()}
    assert rows == dict.fromkeys(("missing", "other values", "red"), ROWS // 3)
    red = slices["red"]["mixture"]
    assert (red.auc, red.words) == (None, "one class: 0 positives of 20 rows")
    assert red.log_loss > 0
    assert found.answers["mixture"].seeds == 3


def test_sources_and_slices_are_pooled_over_windows(chain: ModelChain, tmp_path: Path) -> None:
    links = [train(chain, tmp_path, day) for day in range(4)]
    pooled = evaluate(spec(), chain, links).pooled.event
    sources = {name: one["stream"].rows for name, one in pooled.sources.items()}
    assert (set(sources), sum(sources.values())) == ({"a", "b"}, 2 * ROWS)
    assert pooled.sources["a"]["mixture"].auc.seeds == 3
    red = pooled.slices["kind"]["red"]["mixture"]
    assert (red.auc, red.rows, red.positives) == (None, 2 * ROWS // 3, 0)
    assert red.words == f"one class: 0 positives of {2 * ROWS // 3} rows"
    assert pooled.sources["a"]["mixture"].words == ""


def test_progressive_figures_say_so_while_labels_come(chain: ModelChain, tmp_path: Path) -> None:
    links = [train(chain, tmp_path, day) for day in range(2)]
    found = evaluate(spec(), chain, links)
    words = found.windows[KEYS[0]].metrics["mixture"].words_true
    assert words.endswith(f"so far, {ROWS // 2} of {ROWS} rows judged")
    assert found.pooled.paradigms["mixture"].auc_true is None
    train(chain, tmp_path, 2)
    after = evaluate(spec(), chain, links)
    assert after.windows[KEYS[0]].metrics["mixture"].words_true == ""
    assert after.pooled.paradigms["mixture"].auc_true is not None


def test_labels_that_may_be_filed_later_are_waited_for(chain: ModelChain, tmp_path: Path) -> None:
    """`label_join` says how much later than its event a row may be filed."""
    declared = spec(label_join="60h")
    links = [train(chain, tmp_path, day) for day in range(4)]
    found = evaluate(declared, chain, links)
    assert [found.windows[key].event.complete for key in KEYS[:4]] == [True, False, False, False]
    for one in links:
        chain.judge(one, opinion(judgement(one), None, None, evaluate(spec(), chain, [one])))
    stored = chain.judgements(links)
    before = {key: one.model_copy(update={"event": None}) for key, one in stored.items()}
    chain.judge_all([(one.name, before[one.window]) for one in links])
    assert list(complete_judgements(declared, chain, links[0], links[3])) == [KEYS[0]]
