"""Judgements as they are stored: today's form, and that of earlier ones, which lack some keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.errors import DataError
from forebay.executors.model_line.judgement import Judgement
from forebay.mixture.metrics.estimate import Estimate

SCORES = """{"auc": 0.62, "auc_interval": [0.6, 0.64], "log_loss": 0.5, "normalised_entropy": null,
 "calibration": 1.0625, "rows": 3, "positives": 1, "seeds": 1, "words": ""}"""
PART = f"""{{"metrics": {{}},
 "label_completeness": {{"fresh_positives": 1, "complete_positives": 2, "share": 0.5}},
 "event": {{"rows": 4, "judged": 3, "unjudged": {{"gone": 1, "before": 0, "left_out": 0}},
 "complete": true, "answers": {{"mixture": {SCORES}}}, "sources": {{}}, "slices": {{}}}}}}"""
SOURCE = """{"data_from": "2026-03-01T00:00:00+00:00", "data_to": "2026-03-02T00:00:00+00:00",
 "feed": "stream", "planned_rows": null, "served_rows": 5, "trained_rows": 4, "learnt_rows": {},
 "dead_letter_rows": 1, "label_not_known_rows": 0, "late_rows": 0, "odd_timestamps": 0,
 "first_odd": "", "offsets": {"0": [3, 8]}, "planned_offsets": 5, "reason": "",
 "read_offsets": {"records": 5, "control": 0, "aborted": 0, "compacted": 0},
 "gap": {"start": "2026-03-01T00:00:00Z", "end": "2026-03-01T06:00:00Z", "reason": "before"}}"""
TODAY: dict[str, Any] = json.loads(PART) | json.loads(
    f"""{{"window": "2026-03-01", "generation": 1, "parent": null, "steps": 2, "reread_rows": 0,
 "resumed_from_step": 0, "resumed_from_runtime": null, "sources": {{"clicks": {SOURCE}}},
 "stream_offsets": {{"now": {{"offset_seconds": 0, "measured_seconds": [0.0, 2.5]}}}},
 "stale": null, "data_changed": null, "labels": {{"sale": {PART}}}, "rows_agree": true,
 "repeated_events": {{"stream": {{"rows": 3, "repeated": 0}}}}, "rows_line": "rows"}}"""
)


def read(document: dict[str, Any]) -> Judgement:
    return Judgement.of_document(json.dumps(document), "a judgement")


def test_what_was_stored_is_read_and_stored_to_the_digit() -> None:
    found = read(TODAY).model_dump(mode="json")
    assert json.dumps(found, sort_keys=True) == json.dumps(TODAY, sort_keys=True)
    one = {key: value for key, value in TODAY.items() if key != "labels"}
    assert read(one).model_dump(mode="json") == one, "of one label"
    assert read(TODAY).answers["mixture"].estimate == Estimate(0.62, 0.6, 0.64)
    assert read(TODAY).sources["clicks"].agree


def test_an_earlier_judgement_lacks_what_was_not_known_then() -> None:
    later = {"stream_offsets", "repeated_events", "labels", "resumed_from_runtime", "event"}
    found = read({key: value for key, value in TODAY.items() if key not in later})
    assert (found.stream_offsets, found.repeated_events, found.labels) == ({}, None, {})
    assert (found.answers, found.is_partial, found.part("sale").metrics) == ({}, False, {})
    assert read({**TODAY, "event": {**TODAY["event"], "complete": False}}).is_partial


def test_another_document_is_damaged() -> None:
    with pytest.raises(DataError, match="has a damaged row"):
        read({key: value for key, value in TODAY.items() if key != "sources"})
    assert read({**TODAY, "of_a_later_release": 0.5}) == read(TODAY)
