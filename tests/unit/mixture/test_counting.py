"""The counting learner: exact wrapping sums, saved and restored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.learning import minibatch

from forebay.errors import ConfigError
from forebay.mixture.counting import CountingLearner
from forebay.mixture.row_sums import RowSums


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def test_sums_wrap_like_int64_and_survive_saving(tmp_path: Path) -> None:
    learner = CountingLearner(2)
    assert learner.seen() == [RowSums(rows=0, sum=0, sum_of_squares=0)] * 2 == [RowSums()] * 2
    batches = [minibatch("batch", seed) for seed in range(5)]
    for batch in batches:
        assert (learner.score(batch).shape, learner.learn(batch)) == ((64, 0), {})
    assert (learner.columns, learner.left_out(), learner.guards()) == ((), {}, {})
    for index, sums in enumerate(learner.seen()):
        ids = np.concatenate([b.row_ids[b.sources == index] for b in batches]).tolist()
        assert sums.rows == len(ids)
        assert sums.sum == wrapped(sum(ids))
        assert sums.sum_of_squares == wrapped(sum(i * i for i in ids))
    learner.save(tmp_path)
    again = CountingLearner(2)
    again.load(tmp_path)
    assert again.seen() == learner.seen()


def test_export_is_readable_and_another_number_of_sources_is_refused(tmp_path: Path) -> None:
    learner = CountingLearner(2)
    learner.learn(minibatch("stream", 1))
    learner.export(tmp_path)
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert (counts["steps"], sum(sums["rows"] for sums in counts["seen"])) == (1, 64)
    with pytest.raises(ConfigError, match="2 sources, but the pipeline has 3"):
        CountingLearner(3).load(tmp_path)
