"""Names of uses: none is met twice, whatever streams are called, and each says what it is of."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.datasets import is_use_name, source_of, source_uses, stream_of
from forebay.operators.runs.task_ids import source_label

NAMES = st.from_regex(r"[A-Ca-c][abc_-]{0,3}", fullmatch=True)
STREAMS = st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=4)


@given(STREAMS)
def test_each_use_has_a_name_of_its_own(streams: dict[str, list[str]]) -> None:
    uses = source_uses(streams)
    assert {(use.stream, use.source) for use in uses} == {
        (stream, name) for stream, names in streams.items() for name in names
    }
    names = [use.name for use in uses]
    assert len(set(names)) == len(names) == len({source_label(name) for name in names})
    readers = Counter(use.source for use in uses)
    for use in uses:
        assert is_use_name(use.name)
        assert source_of(use.name) == use.source
        assert stream_of(use.name) == ("" if readers[use.source] == 1 else use.stream)
    every = [name for names in streams.values() for name in names]
    if set(readers.values()) == {1}:  # in declared order, as before there were several uses of one
        assert names == list(dict.fromkeys(every))
