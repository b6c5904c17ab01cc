"""Folded positions say what the positions of all their tasks say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.task_runs import Positions, Run
from forebay.datatasks.tasks import OffsetsRead, Position, TaskProgress

SOURCES = ("history", "clicks.live")
names = st.builds("{}/{}".format, st.sampled_from(SOURCES), st.integers(0, 12))


def progress(name: str, rows: int, *, ended: bool) -> TaskProgress:
    number = int(name.rpartition("/")[2])
    return TaskProgress(
        position=Position(0, rows),
        rows_read=rows,
        dead_rows=rows // 3,
        late_rows=rows // 2,
        offsets=OffsetsRead(records=rows),
        first_us=100 - number,
        last_us=100 + number if rows else None,
        ended=ended,
    )


def totals(entries: dict[str, TaskProgress]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for name, at in entries.items():
        source = name.rpartition("/")[0]
        counts = (at.rows_read, at.dead_rows, at.late_rows, at.offsets.records)
        found[source] = tuple(map(sum, zip(found.get(source, (0, 0, 0, 0)), counts, strict=True)))
    return found


@given(st.lists(st.tuples(names, st.integers(0, 9), st.booleans()), max_size=60))
def test_folded_positions_have_the_same_counts(steps: list[tuple[str, int, bool]]) -> None:
    """Also where they were restored in between; and there are few of them."""
    plain, folded = Positions({}, folds=False), Positions({}, folds=True)
    for name, rows, ends in steps:
        known = plain.entries.get(name)
        if known is not None and known.ended:
            continue
        at = progress(name, (known.rows_read if known else 0) + rows, ended=ends)
        plain.set(name, at)
        folded.set(name, at)
        folded = Positions(folded.entries, folds=True)
        assert folded.ended == plain.ended == sum(at.ended for at in plain.entries.values())
        assert totals(folded.entries) == totals(plain.entries)
    left = {name for name, at in plain.entries.items() if not at.ended}
    runs = {run for name in folded.entries if (run := Run.of(name)) is not None}
    assert folded.entries.keys() == left | {run.name for run in runs}
    ended = {f"{run.source}/{at}" for run in runs for at in range(run.first, run.end)}
    assert ended == plain.entries.keys() - left
    ends = {(run.source, run.end) for run in runs}
    assert not any((run.source, run.first) in ends for run in runs), "neighbours are one run"
    for run in runs:
        of_run = [plain.entries[f"{run.source}/{at}"] for at in range(run.first, run.end)]
        assert folded.entries[run.name].first_us == min(each.first_us or 0 for each in of_run)
        known_us = [each.last_us for each in of_run if each.last_us is not None]
        assert folded.entries[run.name].last_us == max(known_us, default=None)
        assert folded.entries[run.name].ended
