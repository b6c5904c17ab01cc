"""Every command that `why` gives is executed, in the state in which it was given."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.jobs import ToldJob, failed
from support.model_lines import drop_checkpoints, record_link
from support.scripted_runs import FIRST, SECOND, Runs, scripted_runs
from support.stages import START, noon, table

from forebay import cli
from forebay.datatasks.planning.operations import Share, scan_shares
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.memory.source import MEMORY, MemorySource
from forebay.datatasks.window_range import parse_window_or_warm_start
from forebay.errors import ConfigError, DataError
from forebay.executors.model_line.adjoining import coverage_after
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.why import Why, why_window

FOURTH = "2026-03-04"


def why(runs: Runs, number: int) -> Why:
    return why_window(runs.stages.target(number), lambda: runs.stages.now)


def obey(runs: Runs, command: str) -> None:
    """Do what a command says. Raises where it would not end well."""
    program, name, *words = shlex.split(command)
    assert program == "forebay"
    if name == "run":
        options = dict(zip(words[1::2], words[2::2], strict=False))
        again = "--reprocess" in words
        runs.run(options["--from"], options["--to"], runs.succeeds, reprocess=again)
    elif name == "forget":
        assert runs.stages.ledger.forget(words[1])
    elif name == "why":
        why(runs, int(words[1][-2:]) - 1)
    else:
        assert cli.run([name, *(word for word in words if word != "-f")]) == 0


def stale(runs: Runs) -> None:
    """The second window was trained again."""
    for day in range(4):
        runs.trained(day)
    runs.run(SECOND, SECOND, runs.succeeds, reprocess=True)


def stale_not_kept(runs: Runs) -> None:
    """And the window before the first stale one has no checkpoint any more."""
    stale(runs)
    drop_checkpoints(runs.chain, 2)


def changed(runs: Runs) -> None:
    for day in range(4):
        runs.trained(day)
    MEMORY["a"] = table([noon(day) for day in range(4)] + [noon(3)])


def forgotten(runs: Runs) -> None:
    for day in range(4):
        runs.trained(day)
    assert runs.stages.ledger.forget(FOURTH)


def lost_and_forgotten(runs: Runs) -> None:
    """A job was to train it, and its plan was forgotten since."""
    for day in range(3):
        runs.trained(day)
    with pytest.raises(DataError):
        runs.run(FOURTH, FOURTH, runs.ends("failed", error=failed("DataError", "null", 3)))
    assert runs.stages.ledger.forget(FOURTH)
    assert why(runs, 3).state == "not planned"


Case = Callable[[Runs], object]
CASES: dict[str, Case] = {
    "nobody has asked for it": lambda _runs: None,
    "two windows before it are not trained": lambda runs: runs.trained(0),
    "nor are they planned": lambda runs: (runs.trained(0), runs.plan(3)),
    "planned": lambda runs: runs.plan(0, 1, 2, 3),
    "stale": stale,
    "stale, and its start is not kept": stale_not_kept,
    "changed": changed,
    "forgotten": forgotten,
    "the line began with it": lambda runs: (runs.trained(3), runs.trained(0)),
    "lost and forgotten": lost_and_forgotten,
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_command_works_and_trains_the_window(
    runs: Runs, case: Callable[[Runs], object]
) -> None:
    case(runs)
    before = why(runs, 3)
    assert before.command, before
    obey(runs, before.command)
    after = why(runs, 3)
    assert (after.state, after.command) == ("trained", ""), (before, after)


def test_the_command_of_a_job_that_failed(runs: Runs) -> None:
    with pytest.raises(DataError):
        runs.run(FIRST, SECOND, runs.ends("failed", error=failed("DataError", "null", 3)))
    advice = why(runs, 1)
    assert advice.state == "failed"
    obey(runs, advice.command)
    assert why(runs, 1).state == "trained"


def test_the_command_of_a_job_that_was_to_train_again(runs: Runs) -> None:
    runs.trained(0)
    fails = runs.ends("failed", error=failed("DataError", "null", 3))
    with pytest.raises(DataError):
        runs.run(FIRST, SECOND, fails, reprocess=True)
    obey(runs, why(runs, 1).command)
    trained = runs.chain.newest(FIRST)
    assert trained is not None
    assert trained.generation > 1


def test_the_command_of_a_job_that_runs(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.plan(0)
    job = ToldJob(runs.stages.home)
    (job.folder.path / "logs" / "trainer-0.log").write_text("step 1\n")
    job.tell("running", ended_at=None)
    with job.supervised():
        advice = why(runs, 0)
        obey(runs, advice.command)
    assert advice.command.endswith(f"-f {job.job_id}")
    assert "trainer-0    step 1" in capsys.readouterr().out


def test_the_command_of_an_unreadable_source(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise DataError("no such bucket")

    monkeypatch.setattr("forebay.datatasks.look.why.open_source", refuse)
    advice = why(runs, 0)
    assert (advice.state, advice.command) == ("waiting", f"forebay why ads {FIRST}")
    obey(runs, advice.command)


def test_the_command_of_a_changed_warm_start(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    warm = f"2026-02-20_{FIRST}"
    record_link(runs.chain, warm, {"a": 1})
    monkeypatch.setattr(Ledger, "data_changed", lambda _self, _links: {warm: "data changed"})
    found = runs.stages
    target = LineTarget(found.project, found.pipeline, found.home, "main")
    window = parse_window_or_warm_start(found.pipeline, warm)
    advice = why_window(target.at(window), lambda: found.now)
    assert advice.command == f"forebay forget ads {warm}"
    obey(runs, advice.command)
    assert found.ledger.latest_plan(warm) is None


def test_command_of_a_forgotten_warm_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model between them becomes stale by it: the run of the last window alone is refused."""
    warm = f"2026-02-20_{FIRST}"
    with scripted_runs(tmp_path, monkeypatch, train={"warm_start": "2026-02-20"}) as runs:
        runs.run(FIRST, SECOND, runs.succeeds)
        runs.plan(2)
        assert runs.stages.ledger.forget(warm)
        advice = why(runs, 2)
        assert "stale once window" in advice.reason
        obey(runs, advice.command)
        assert why(runs, 2).state == "trained"


def refused(runs: Runs, number: int) -> Why:
    """The answer where `run` would refuse the window: no command, and run's own words."""
    advice, key = why(runs, number), runs.stages.window(number).key
    with pytest.raises(ConfigError) as refusal:
        runs.run(key, key, runs.succeeds)
    assert advice.command == ""
    assert advice.reason.endswith(f"; line 'main' cannot train it: {refusal.value}")
    return advice


def test_no_command_inside_the_warm_start_that_the_line_began_with(runs: Runs) -> None:
    declared = model_fingerprint_of(runs.stages.pipeline, runs.stages.sources)
    for key in (f"2026-02-20_{FOURTH}", FOURTH):
        record_link(runs.chain, key, {"a": 1}, model_fingerprint=declared)
    assert "is part of the warm start" in refused(runs, 1).reason


def test_no_command_where_the_model_was_changed_since(runs: Runs) -> None:
    record_link(runs.chain, FIRST, {"a": 1}, model_fingerprint="of another declaration")
    assert "changed since window 2026-03-01 was trained" in refused(runs, 1).reason


def test_no_command_where_no_checkpoint_is_kept_to_begin_from(runs: Runs) -> None:
    for day in range(4):
        runs.trained(day)
    drop_checkpoints(runs.chain, 1)
    assert runs.stages.ledger.forget(SECOND)
    assert "its checkpoint is not kept" in refused(runs, 1).reason


def test_a_job_that_refused_its_declaration_is_not_merely_run_again(runs: Runs) -> None:
    with pytest.raises(ConfigError):
        runs.run(FIRST, SECOND, runs.ends("failed", error=failed("ConfigError", "offset", 1)))
    advice = why(runs, 1)
    assert advice.next.startswith("change what it says, then run it again: ")
    obey(runs, advice.command)


def test_what_is_lost_by_training_a_forgotten_window_again_is_said(runs: Runs) -> None:
    forgotten(runs)
    MEMORY["b"] = table([noon(day) for day in range(3)])
    lost = "; trained again, window 2026-03-04: source b has 0 rows now, and had 1 when it was"
    assert lost in why(runs, 3).reason


def test_what_is_lost_by_training_stale_windows_again_is_said(runs: Runs) -> None:
    stale(runs)
    MEMORY["a"] = table([noon(day) for day in (0, 0, 1, 1, 2, 3, 3)])
    reason = why(runs, 3).reason
    assert "; trained again, window 2026-03-03: source a has 1 rows now, and had 2" in reason
    assert reason.count("trained again, ") == 1
    assert runs.stages.ledger.forget(FOURTH)
    assert "; trained again, window 2026-03-03: " in why(runs, 3).reason, "what it starts from"


@pytest.mark.parametrize("policy", ["skip", "fail"])
def test_what_a_late_source_keeps_from_stale_windows_is_said(runs: Runs, policy: str) -> None:
    stale(runs)
    found = runs.stages
    found.late["a"] = START
    ready = found.sources["a"].ready.model_copy(update={"late": policy})
    found.sources["a"] = found.sources["a"].model_copy(update={"ready": ready})
    answer = why(runs, 3)
    if policy == "skip":
        lost = "source a has 0 rows now, and had 2 when it was trained (skipped: no marker)"
        assert f"; trained again, window 2026-03-04: {lost}" in answer.reason
    else:
        assert (answer.next, answer.command) == ("correct that, then run it", "")
        assert "source 'a' is not complete: no marker" in answer.reason


def test_no_line_is_begun_with_a_window_without_rows(runs: Runs) -> None:
    """Neither with one that nobody has asked for, nor with one that has lost its rows."""
    stored = dict(MEMORY)
    without_first = table([noon(day) for day in range(1, 4)])
    MEMORY.update(a=without_first, b=table([noon(day) for day in range(-2, -1)]))
    advice = why(runs, 0)
    assert advice.command == ""
    assert advice.next == "nothing: line 'main' begins with the first window that has rows"
    MEMORY.update(stored)
    stale_not_kept(runs)
    drop_checkpoints(runs.chain, 1)
    MEMORY.update(a=without_first, b=without_first)
    advice = why(runs, 1)
    assert (advice.next, advice.command) == ("resolve that first", "")
    assert "window 2026-03-01 cannot begin line 'main': it has no rows" in advice.reason


def test_no_command_for_another_cut(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.plan(0)
    plan = runs.stages.ledger.plan(FIRST, 1)
    runs.train(plan, coverage=coverage_after(plan, {}))
    monkeypatch.setattr(MemorySource, "cut", "another column")
    assert "belong to windows by another column now" in refused(runs, 1).reason


def test_no_command_where_another_line_has_trained_the_window_as_another_time(runs: Runs) -> None:
    record_link(ModelChain(runs.stages.home, "ads", "b"), FIRST, {"a": 1})
    found = runs.stages
    dataset = found.pipeline.dataset.model_copy(update={"timezone": "Europe/Berlin"})
    found.pipeline = found.pipeline.model_copy(update={"dataset": dataset})
    assert f"window {FIRST} was trained as" in refused(runs, 0).reason


def test_no_command_where_stale_rows_are_gone(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def scanned(source: Source, shares: Sequence[Share]) -> object:
        if shares[0].window.key < FOURTH:
            raise DataError("these rows were deleted")
        return scan_shares(source, shares)

    stale(runs)
    runs.plan(4)
    monkeypatch.setattr("forebay.datatasks.look.why.scan_shares", scanned)
    advice = why(runs, 4)
    assert (advice.state, advice.command) == ("planned", "")
    assert advice.reason.endswith("it cannot be read again: these rows were deleted")
