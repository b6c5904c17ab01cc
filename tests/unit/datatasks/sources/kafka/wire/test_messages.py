"""What each offset of a stretch is, wherever batches and readers split it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.rows.offset_runs import (
    ABORTED,
    COMPACTED,
    CONTROL,
    RECORDS,
    as_runs,
    between,
    offsets_read,
)
from forebay.datatasks.sources.kafka.chunks import groups
from forebay.datatasks.sources.kafka.wire.messages import Messages, messages_within
from forebay.datatasks.sources.kafka.wire.records import MessageBatch

# Each batch: how many offsets before it are gone, its kind, and which of its offsets are left.
BATCHES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([RECORDS, RECORDS, CONTROL, ABORTED]),
        st.lists(st.booleans(), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=8,
)


def log_of(drawn: list[tuple[int, int, list[bool]]]) -> tuple[list[MessageBatch], list[int]]:
    """Batches, and the kind of each offset from 0 on."""
    batches, kinds = [], []
    for gone, kind, left in drawn:
        kinds += [COMPACTED] * gone
        first = len(kinds)
        offsets = [first + n for n, is_left in enumerate(left) if is_left and kind == RECORDS]
        last = first + len(left) - 1
        values: list[bytes | None] = [b"%d" % each for each in offsets]
        batches.append(MessageBatch(first, last, offsets, offsets, values, kind, 0))
        kinds += [COMPACTED if kind == RECORDS and not is_left else kind for is_left in left]
    return batches, kinds


def read(batches: list[MessageBatch], first: int, end: int) -> list[Messages]:
    found = []
    for batch in batches:
        messages = messages_within(batch, first, end)
        if messages is not None and first < end:
            found.append(messages)
            first = messages.end
    return found


@given(BATCHES, st.data())
def test_each_offset_is_counted_once(
    drawn: list[tuple[int, int, list[bool]]], data: st.DataObject
) -> None:
    batches, kinds = log_of(drawn)
    first = data.draw(st.integers(0, len(kinds) - 1))
    end = data.draw(st.integers(first + 1, len(kinds)))
    most = data.draw(st.integers(1, 4))
    cuts = list(groups(read(batches, first, end), most))
    seen: list[int] = []
    for group in cuts:
        assert len(group.offsets) <= most
        at = len(seen) + first
        for run in group.runs:
            assert run.first == at
            seen += [run.kind] * (run.end - run.first)
            at = run.end
        records = [each for run in group.runs if run.kind == RECORDS for each in range(*run[:2])]
        assert (group.offsets, group.values) == (records, [b"%d" % each for each in records])
    assert seen == kinds[first:end]
    runs = as_runs([run for group in cuts for run in group.runs])
    middle = data.draw(st.integers(first, end))
    before, after = offsets_read(runs, middle), offsets_read(between(runs, middle, end), end)
    assert before.plus(after) == offsets_read(runs, end)
    assert [*before.model_dump().values()] == [
        kinds[first:middle].count(kind) for kind in (RECORDS, CONTROL, ABORTED, COMPACTED)
    ]
