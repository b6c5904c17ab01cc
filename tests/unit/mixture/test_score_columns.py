"""Names of score columns: read back as they were written, and no other name is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.mixture.score_columns import ScoreColumn, over_seeds

WORDS = st.sampled_from(["mixture", "stream+head", "batch_then_stream", "memory"])


@given(WORDS, st.one_of(st.just(""), WORDS), st.integers(0, 99), st.sampled_from(["", "sale-2"]))
def test_a_name_is_read_back(variant: str, tower: str, seed: int, label: str) -> None:
    column = ScoreColumn(variant, tower, seed, label)
    assert ScoreColumn.named(column.name) == column


def test_answers_of_the_serving_seed_have_the_variants_own_name_and_seeds_are_gathered() -> None:
    assert ScoreColumn("mixture").name == "mixture"
    assert ScoreColumn("mixture+head", "memory", 2).name == "mixture+head/memory@2"
    assert ScoreColumn("mixture", "memory", 1, "sale").name == "sale:mixture/memory@1"
    names = ["stream+head", "mixture", "mixture/memory", "mixture@2", "stream+head@2", "mixture@1"]
    assert over_seeds(names) == {
        ScoreColumn("stream+head"): (0, 4),
        ScoreColumn("mixture"): (1, 5, 3),
        ScoreColumn("mixture", "memory"): (2,),
    }
    assert over_seeds([]) == {}


@pytest.mark.parametrize("name", ["", "@1", "a@0", "a@-1", "a/b/c", "a@1@2", "a/@1", ":a", "a:b:c"])
def test_other_texts_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a score column"):
        ScoreColumn.named(name)
