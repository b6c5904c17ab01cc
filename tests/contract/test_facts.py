"""The facts of a window's life, over each kind of database: planned, claimed, linked, judged,
published, trained anew, forgotten."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import update
from support.links import judgement, link, window_of
from support.model_lines import export, plan_empty
from support.task_tables import record_tasks
from support.there import there

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.tasks import OffsetsRead
from forebay.errors import DataError, FencedError, InfrastructureError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import ReadRows
from forebay.executors.stages.claims import Claims
from forebay.home.database.open import database_of
from forebay.home.database.tables import plans
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.mixture.row_sums import RowSums
from forebay.operators.runs.run_failures import last_failures, note_failure

NOW = datetime(2026, 3, 9, tzinfo=UTC)
FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
SPAN = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


@pytest.fixture
def ledger(home: Home) -> Ledger:
    return Ledger(home, "ads")


@pytest.fixture
def chain(home: Home, ledger: Ledger) -> ModelChain:
    chain = ModelChain(home, "ads")
    for key, parent in ((FIRST, None), (SECOND, (FIRST, 1)), (THIRD, (SECOND, 1))):
        plan_empty(ledger, key)
        chain.record(link(key, {"clicks": 10}, parent=parent))
    return chain


def test_a_plan_is_read_as_it_was_recorded(ledger: Ledger) -> None:
    assert ledger.windows() == []
    plan = record_tasks(ledger, FIRST, SPAN, {"history": [(0, 5)], "clicks": [(1, 7), (2, 8)]})
    assert ledger.latest_plan(FIRST) == ledger.plan(FIRST, 1) == plan
    assert ledger.plans({FIRST: 1}) == {FIRST: plan}
    assert ledger.tasks(FIRST, 1).column("rows").to_pylist() == [5, 7, 8]
    with pytest.raises(FencedError, match="another process planned"):
        record_tasks(ledger, FIRST, SPAN, {"history": [(0, 5)]})
    for window, generation in ((FIRST, 2), (SECOND, 1)):
        assert ledger.plans({window: generation}) == {}
        with pytest.raises(DataError, match="it was forgotten: run the window again"):
            ledger.plan(window, generation)


@pytest.mark.parametrize("damage", ["", "{", '{"window": 1}'])
def test_a_damaged_plan_is_named(ledger: Ledger, damage: str) -> None:
    record_tasks(ledger, FIRST, SPAN, {"history": [(0, 5)]})
    change = update(plans).values(document=damage)
    ledger.database.transact(lambda rows: rows.execute(change))
    for read in (lambda: ledger.latest_plan(FIRST), lambda: ledger.plans({FIRST: 1})):
        with pytest.raises(DataError, match=rf"a plan of window {FIRST}\): restore the database"):
            read()


def test_a_claim_keeps_its_generation(ledger: Ledger) -> None:
    record_tasks(ledger, FIRST, SPAN, {"history": [(0, 5)]})
    claims = Claims(ledger, FIRST)
    assert claims.decide("a#0", renewed=None) == 1
    assert claims.decide("b#0", renewed=1) == 2, "the same tasks under a new number"
    assert (claims.decide("a#0", renewed=1), claims.generation("b#0")) == (1, 2)
    assert ledger.tasks(FIRST, 2) == ledger.tasks(FIRST, 1)


def test_a_link_is_read_as_it_was_recorded(ledger: Ledger, chain: ModelChain) -> None:
    plan_empty(ledger, "2026-03-04")
    largest = RowSums(rows=2**63 - 1, sum=-(2**63), sum_of_squares=2**63 - 1)
    offsets = OffsetsRead(records=5, control=4, aborted=2, compacted=2**40)
    clicks = ReadRows(
        rows=9, dead=2, late=3, odd_timestamps=1, first_odd="row 7", label_not_known=4
    )
    recorded = link(
        "2026-03-04",
        parent=(THIRD, 1),
        base_seen={"clicks": RowSums(rows=10), "history": RowSums()},
        seen={"clicks": largest, "history": RowSums(rows=3)},
        read={"clicks": clicks, "history": ReadRows(rows=3, offsets=offsets)},
        files={
            "steps": Stored(name="models/steps", checksum="a" * 64, size_bytes=2**40),
            "scores": Stored(name="models/scores", checksum="b" * 64, size_bytes=0),
        },
        finished_at=datetime(2026, 3, 5, 1, 2, 3, 456789, tzinfo=UTC),
    )
    chain.record(recorded)
    found = there(chain.newest("2026-03-04"))
    assert (found, list(found.seen)) == (recorded, ["clicks", "history"]), "in their order"
    assert (chain.links()[-1], ledger.trained("2026-03-04")) == (recorded, 1)
    assert ledger.history("2026-03-04")[-1]["event"] == "trained"


def test_a_link_needs_its_plan_and_its_parent(ledger: Ledger, chain: ModelChain) -> None:
    with pytest.raises(InfrastructureError, match="the window was forgotten meanwhile"):
        chain.record(link("2026-03-04", parent=(THIRD, 1)))
    plan_empty(ledger, "2026-03-04")
    with pytest.raises(InfrastructureError, match="generation 9 of window 2026-03-03 is gone"):
        chain.record(link("2026-03-04", parent=(THIRD, 9)))
    assert chain.windows() == [FIRST, SECOND, THIRD]
    assert [entry["event"] for entry in ledger.history("2026-03-04")] == ["planned"]


@pytest.mark.parametrize("parent", [(THIRD, 1), None])
def test_a_link_begins_where_its_parent_ended(
    ledger: Ledger, chain: ModelChain, parent: tuple[str, int] | None
) -> None:
    plan_empty(ledger, "2026-03-04")
    other = link("2026-03-04", {"clicks": 20}, {"clicks": 9}, parent=parent)
    with pytest.raises(InfrastructureError, match=r"has seen 9 rows of clicks, .* not stored"):
        chain.record(other)
    assert chain.windows() == [FIRST, SECOND, THIRD]


def test_windows_come_in_the_order_of_time(ledger: Ledger, home: Home) -> None:
    line = ModelChain(home, "ads", "hours")
    keys = ["2026-02-01_2026-03-01", "2026-03-01T00", "2026-03-01T09", "2026-03-01T10"]
    for key in reversed(keys):
        plan_empty(ledger, key)
        line.record(link(key))
    assert line.windows() == ledger.windows() == keys
    assert there(line.first()).window == keys[0]
    assert [each.window for each in line.last(2)] == keys[2:]
    before = [line.before(link(key)) for key in keys]
    assert [each and each.window for each in before] == [None, *keys[:-1]]
    spans = [window_of(key).span for key in ("2026-03-01T09", "2026-03-01", "2026-02-28")]
    over = [[each.key for each in line.over(span)] for span in spans]
    assert over == [keys[2:3], keys[1:], keys[:1]]
    assert line.over(spans[0]) == [window_of(keys[2])]
    assert line.over(window_of("2026-03-01T05").span) == []
    assert ModelChain(home, "ads", "none").over(spans[1]) == []
    between = line.between(link(keys[1]), link(keys[2]))
    assert [each.window for each in between] == keys[1:3]
    assert [each.window for each in line.after(link(keys[1]), 1)] == [keys[2]]
    assert [each.window for each in line.after(link(keys[1]), 9)] == keys[2:]
    assert ledger.windows(before=link(keys[2])) == keys[:2]


def test_trained_anew_later_windows_are_stale(ledger: Ledger, chain: ModelChain) -> None:
    assert chain.stale_reasons() == {}
    plan_empty(ledger, FIRST, 2)
    chain.record(link(FIRST, generation=2))
    reason = "stale (built on generation 1 of 2026-03-01)"
    assert chain.stale_reasons() == {SECOND: reason, THIRD: reason}
    assert [each.generation for each in chain.links() if each.window == FIRST] == [1, 2]
    assert chain.stale_reason(there(chain.link(FIRST, 1))) is None


def unfit(chain: ModelChain, window: str, generation: int = 1) -> str:
    return there(chain.candidate(window, generation))[1]


def test_what_serves(ledger: Ledger, chain: ModelChain) -> None:
    model = export(chain, there(chain.newest(SECOND)))
    assert chain.published() is None
    assert not chain.publish(there(chain.newest(SECOND)), NOW)
    assert unfit(chain, FIRST) == f"window {SECOND} is later and serves"
    assert chain.publish(there(chain.newest(FIRST)), NOW)
    plan_empty(ledger, SECOND, 2)
    chain.record(link(SECOND, generation=2, parent=(FIRST, 1)))
    assert "trained again, as generation 2" in unfit(chain, SECOND, 1)
    assert "is stale" in unfit(chain, THIRD)
    pointer = there(chain.published())
    assert (pointer.window, pointer.generation, pointer.published_at) == (SECOND, 1, NOW)
    assert pointer.path == model


def test_a_judgement_takes_the_place_of_the_one_before(chain: ModelChain) -> None:
    one = there(chain.newest(SECOND))
    assert chain.judgement(one) is None
    for stale in (None, "stale"):
        chain.judge(one, judgement(one, stale=stale))
    assert chain.judgement(one) == judgement(one, stale="stale")
    assert chain.judgement(there(chain.newest(FIRST))) is None


def test_a_window_is_forgotten_by_its_line_alone(ledger: Ledger, chain: ModelChain) -> None:
    other, others = Ledger(ledger.home, "ads", "b"), ModelChain(ledger.home, "ads", "b")
    others.record(link(FIRST, {"clicks": 10}))
    others.record(link(SECOND, {"clicks": 10}, parent=(FIRST, 1)))
    plan_empty(other, SECOND, 2)
    claims = {each.line: Claims(each, SECOND) for each in (ledger, other)}
    for line, claim in claims.items():
        assert claim.decide("a#0", renewed=None) == (1 if line == "main" else 2)
    assert ledger.forget(SECOND)
    assert not ledger.forget(SECOND)
    assert (ledger.latest_plan(SECOND), ledger.windows()) == (None, [FIRST, THIRD])
    assert ledger.trained(SECOND) is None
    assert there(chain.newest(SECOND)).generation == 1, "its model stays"
    assert (other.trained(SECOND), other.windows()) == (1, [FIRST, SECOND, THIRD])
    assert other.generations(SECOND) == [1, 2], "what it has trained, and what it is to train"
    assert [claim.generation("a#0") for claim in claims.values()] == [None, 2]
    assert ledger.forgotten({FIRST: 1, SECOND: 1}) == {SECOND}
    assert other.forgotten({SECOND: 1}) == set()
    plan_empty(ledger, SECOND, ledger.state(SECOND).next_generation)
    planned = [each.latest_plan(SECOND) for each in (ledger, other)]
    assert [plan.generation if plan else None for plan in planned] == [3, 2]
    chain.record(link(SECOND, {"clicks": 10}, generation=3, parent=(FIRST, 1)))
    assert (ledger.trained(SECOND), ledger.forgotten({SECOND: 3})) == (3, set())
    assert other.trained(SECOND) == 1


def test_the_newest_failure_of_a_dag_is_kept(home: Home) -> None:
    def failures() -> dict[str, int]:
        return database_of(home).read(lambda rows: last_failures(rows, ["ads", "ads_hourly"]))

    assert failures() == {}
    for failed_at in (1_772_000_000_000_001, 1_772_000_000_000_002):
        note_failure(home, "ads", failed_at)
        assert failures() == {"ads": failed_at}
