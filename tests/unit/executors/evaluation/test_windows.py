"""Which windows' labels judge a window, and which windows are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.links import judgement
from support.minibatches import labelled
from support.model_lines import record_link, replace_link
from support.stages import pipeline
from support.there import there

from forebay.errors import DataError
from forebay.executors.evaluation.summary import opinion
from forebay.executors.evaluation.windows import Evaluation, evaluate
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import ScoreWriter
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of
from forebay.mixture.metrics.figures import LabelCounts, PublicationScores

KEYS = [f"2026-03-0{day}" for day in range(1, 7)]


@pytest.mark.parametrize(
    ("size", "offset", "windows"),
    [("1d", "0s", 1), ("1d", "1h", 2), ("1d", "24h", 2), ("1d", "25h", 3), ("1h", "24h", 25)],
)
def test_labels_come_within_the_offset_and_one_window(size: str, offset: str, windows: int) -> None:
    streams = {"a": {"sources": ["a"], "offset": offset}, "b": {"sources": ["b"]}}
    spec = pipeline(("a", "b"), dataset={"window": size, "streams": streams})
    assert spec.dataset.label_horizon == windows


def test_scores_are_kept_for_as_long_as_copies_are_looked_for() -> None:
    dataset = {"window": "1h", "label_join": "72h"}
    assert pipeline(("a", "b"), dataset=dataset).dataset.label_horizon == 73


@pytest.fixture
def chain(chain: ModelChain, tmp_path: Path) -> ModelChain:
    """Each window scores two events of its own; window n has the labels of window n - 1, and the
    last one those of all before it."""
    for number, key in enumerate(KEYS):
        writer = ScoreWriter(tmp_path / key, ("mixture",))
        scores = np.array([[0.2], [0.8]], np.float32)
        writer.append(labelled("stream", [2 * number, 2 * number + 1], [0, 0]), scores)
        late = range(2 * number) if key == KEYS[-1] else range(2 * number - 2, 2 * number)
        ids = [event for event in late if event >= 0]
        writer.append(labelled("batch", ids, [event % 2 for event in ids]), None)
        writer.seal()
        stored = store_of(chain.home).put_tree("models", "scores", tmp_path / key)
        record_link(chain, key, {"a": 2}, files={"scores": stored})
    return chain


def joined(chain: ModelChain, keys: list[str], **dataset: object) -> dict[str, int]:
    found = evaluate(pipeline(("a",), dataset=dataset), chain, list(chain.newest_of(keys).values()))
    return {key: part.metrics["mixture"].joined_rows for key, part in found.windows.items()}


def test_labels_of_later_windows_count_within_the_horizon(chain: ModelChain) -> None:
    assert joined(chain, KEYS) == dict.fromkeys(KEYS[:-1], 2) | {KEYS[-1]: 0}
    two = {"streams": {"a": {"sources": ["a"], "offset": "24h"}}}
    assert joined(chain, KEYS[:1], **two) == {KEYS[0]: 2}


def test_only_what_is_asked_for_is_told(chain: ModelChain) -> None:
    assert joined(chain, KEYS[1:3]) == {KEYS[1]: 2, KEYS[2]: 2}
    assert joined(chain, [KEYS[-1]]) == {KEYS[-1]: 0}
    assert (joined(chain, [KEYS[0], KEYS[3]]), joined(chain, [])) == ({KEYS[0]: 2, KEYS[3]: 2}, {})


def test_labels_beyond_the_horizon_do_not_count(chain: ModelChain, tmp_path: Path) -> None:
    record_link(chain, KEYS[1], {"a": 2}, generation=2)  # its labels of the first window are gone
    assert joined(chain, [KEYS[0]]) == {KEYS[0]: 0}
    far = {"streams": {"a": {"sources": ["a"], "offset": "96h"}}}
    assert joined(chain, [KEYS[0]], **far) == {KEYS[0]: 2}
    near = {"streams": {"a": {"sources": ["a"], "offset": "72h"}}}
    assert joined(chain, [KEYS[0]], **near) == {KEYS[0]: 0}


def judged(evaluation: Evaluation, link: Link) -> Judgement:
    update = {"label_completeness": LabelCounts(share=0.25), "event": None}
    return opinion(judgement(link), None, None, evaluation).model_copy(update=update)


def metrics(found: Evaluation) -> dict[str, dict[str, PublicationScores]]:
    return {key: part.metrics for key, part in found.windows.items()}


def test_without_scores_the_figures_are_those_of_the_judgement(chain: ModelChain) -> None:
    spec, links = pipeline(("a",)), list(chain.newest_of(KEYS).values())
    before = evaluate(spec, chain, links)
    assert before.notes == []
    for link in links[:2]:
        chain.judge(link, judged(before, link))
        replace_link(chain, link.model_copy(update={"files": {}}))
    after = evaluate(spec, chain, list(chain.newest_of(KEYS).values()))
    assert metrics(after) == metrics(before)
    shares = [there(after.windows[key].label_completeness).share for key in KEYS[:2]]
    assert shares == [0.25] * 2
    assert after.windows[KEYS[2]] == before.windows[KEYS[2]]
    (note,) = after.notes
    assert "(job.windows_kept): 2; their figures" in note
    rest = evaluate(spec, chain, list(chain.newest_of(KEYS[2:]).values()))
    assert (after.pooled, rest.notes) == (rest.pooled, [])


def test_scores_that_go_are_no_damage(chain: ModelChain, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer, or forebay gc, finds them old between the look at rows and that at bytes."""
    spec, links = pipeline(("a",)), list(chain.newest_of(KEYS).values())
    before, store = evaluate(spec, chain, links), store_of(chain.home)
    plain, first = store.tree, links[0]

    def goes(stored: Stored) -> Path:
        monkeypatch.undo()
        chain.judge(first, judged(before, first))
        replace_link(chain, first.model_copy(update={"files": {}}))
        store.remove([first.files["scores"].name])
        return plain(stored)

    monkeypatch.setattr(store, "tree", goes)
    after = evaluate(spec, chain, links)
    assert metrics(after) == metrics(before)
    assert there(after.windows[first.window].label_completeness).share == 0.25
    store.remove([links[1].files["scores"].name])
    with pytest.raises(DataError, match="is missing"):
        evaluate(spec, chain, links)


def test_a_model_that_only_counts_has_no_metrics(chain: ModelChain) -> None:
    chain = ModelChain(chain.home, "ads", "other")
    record_link(chain, KEYS[0], {"a": 2})
    counting = evaluate(pipeline(("a",), model={"kind": "count"}), chain, chain.links())
    towers = evaluate(pipeline(("a",)), chain, chain.links())
    assert (list(metrics(counting)[KEYS[0]]), list(metrics(towers)[KEYS[0]])) == ([], ["mixture"])


def test_rows_that_share_their_event_id_are_counted_by_window(chain: ModelChain) -> None:
    found = evaluate(pipeline(("a",)), chain, list(chain.newest_of(KEYS[1:3]).values()))
    none = {"repeated": 0, "twice": 0, "contradicting": 0}
    assert found.repeated == {key: {"batch": {"rows": 2, **none}} for key in KEYS[1:3]}
    one = judgement(window=KEYS[1])
    assert opinion(one, None, None, found).repeated_events == found.repeated[KEYS[1]]
