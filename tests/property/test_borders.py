"""Borders of windows, whatever is proposed for them in whatever order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.contract.borders import Border, in_order

START = datetime(2026, 3, 1, tzinfo=UTC)
Proposals = list[dict[Border, int]]
BORDERS = st.builds(
    lambda partition, hour: Border(partition, START + timedelta(hours=hour)),
    st.sampled_from("ab"),
    st.integers(0, 12),
)
PROPOSALS = st.lists(st.dictionaries(BORDERS, st.integers(0, 30), max_size=8), max_size=6)


@given(PROPOSALS)
def test_what_is_decided_stays_and_offsets_rise_with_instants(proposals: Proposals) -> None:
    decided: dict[Border, int] = {}
    for proposed in proposals:
        new = {border: offset for border, offset in proposed.items() if border not in decided}
        found = in_order(decided, new)
        assert found.keys() == new.keys()
        decided |= found
        for partition in "ab":
            of = [decided[border] for border in sorted(decided) if border.partition == partition]
            assert of == sorted(of)


@given(st.dictionaries(BORDERS, st.integers(0, 30)))
def test_what_is_in_order_is_taken_as_it_is(proposed: dict[Border, int]) -> None:
    first = in_order({}, proposed)
    assert in_order({}, first) == first
