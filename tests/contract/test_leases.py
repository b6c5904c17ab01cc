"""Who trains a line: on one host by a lock file, between hosts by rows in the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from support.jobs import report_job, request, store_job
from support.links import judgement, link
from support.model_lines import export, plan_empty, put

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import FencedError, LineBusyError
from forebay.executors.job import job_changes
from forebay.executors.job.request import JobRequest
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import line_holder, living_holder, take_lease
from forebay.home.database.open import close_databases, database_of
from forebay.home.paths import Home

KEY = "2026-03-01"


@pytest.fixture
def two_hosts(
    new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Home, Home]]:
    """Two home folders that share a database, as two hosts do."""
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    yield Home(tmp_path / "one"), Home(tmp_path / "other")
    close_databases()


def running(home: Home, job_id: str) -> JobRequest:
    made = request(home, job_id, {KEY: 1})
    store_job(made, "running")
    return made


def beat(home: Home, job_id: str) -> None:
    database_of(home).transact(lambda rows: job_changes.beat(rows, job_id, 1, None))


class TestOneHost:
    def test_a_line_is_held_until_the_lease_is_released(self, home: Home) -> None:
        assert line_holder(home, "ads", "main") == ""
        one, two = running(home, "job-1"), running(home, "job-2")
        lease = take_lease(one)
        assert (lease.epoch, line_holder(home, "ads", "main")) == (1, "job-1")
        assert line_holder(home, "ads", "other") == ""
        with pytest.raises(LineBusyError, match="job job-1 trains line 'main' of pipeline 'ads'"):
            take_lease(two)
        lease.release()
        assert line_holder(home, "ads", "main") == "", "though its row still says that it runs"
        again = take_lease(two)
        assert again.epoch == 2
        again.release()

    def test_who_was_overtaken_changes_the_line_no_more(self, home: Home) -> None:
        running(home, "job-1")
        lease = take_lease(running(home, "job-1"))
        lease.release()  # its supervisor died, its trainer hangs
        newer, ledger = take_lease(running(home, "job-2")), Ledger(home, "ads")
        plan_empty(ledger, KEY)
        overtaken = ModelChain(home, "ads", lease_epoch=lease.epoch)
        fenced = r"job job-2 trains this line now \(lease 2\)"
        with pytest.raises(FencedError, match=fenced):
            overtaken.record(link(KEY))
        with pytest.raises(FencedError, match=fenced):
            overtaken.add_file(link(KEY), "steps", put(home))
        assert overtaken.windows() == []
        holder = ModelChain(home, "ads", lease_epoch=newer.epoch)
        holder.record(link(KEY))
        assert holder.windows() == [KEY]
        newer.release()

    def test_publishing_and_judging_need_no_lease(self, home: Home) -> None:
        plan_empty(Ledger(home, "ads"), KEY)
        one = link(KEY)
        ModelChain(home, "ads").record(one)
        export(ModelChain(home, "ads"), one)
        take_lease(running(home, "job-1")).release()
        anyone = ModelChain(home, "ads", lease_epoch=0)
        anyone.judge(one, judgement(one))
        assert not anyone.publish(one, one.finished_at)


class TestTwoHosts:
    def test_a_holder_whose_heart_beats_keeps_the_line(self, two_hosts: tuple[Home, Home]) -> None:
        one, other = two_hosts
        lease = take_lease(running(one, "job-1"))
        assert line_holder(other, "ads", "main") == "job-1"
        waiting = running(other, "job-2")
        beats = threading.Timer(0.7, beat, [one, "job-1"])
        beats.start()
        with pytest.raises(LineBusyError, match="job job-1 trains line"):
            take_lease(waiting, expired_seconds=20)
        beats.join()
        lease.release()

    def test_a_holder_without_a_heartbeat_loses_it(self, two_hosts: tuple[Home, Home]) -> None:
        one, other = two_hosts
        lost, began = take_lease(running(one, "job-1")), time.monotonic()
        found = take_lease(running(other, "job-2"), expired_seconds=1.5)
        assert time.monotonic() - began >= 1.5
        assert found.epoch == lost.epoch + 1
        plan_empty(Ledger(other, "ads"), KEY)
        with pytest.raises(FencedError, match="job job-2 trains this line now"):
            ModelChain(one, "ads", lease_epoch=lost.epoch).record(link(KEY))
        ModelChain(other, "ads", lease_epoch=found.epoch).record(link(KEY))
        assert line_holder(one, "ads", "main") == "job-1", "its own lock file, until it ends"
        lost.release()
        assert line_holder(one, "ads", "main") == "job-2"
        found.release()

    def test_whose_holder_shows_no_life_is_asked_for(self, two_hosts: tuple[Home, Home]) -> None:
        one, other = two_hosts
        lease = take_lease(running(one, "job-1"))
        assert living_holder(one, "ads", "main", 0.1) == "job-1", "its lock file is held"
        assert living_holder(other, "ads", "main", 1.0) == ""
        beats = threading.Timer(0.7, beat, [one, "job-1"])
        beats.start()
        assert living_holder(other, "ads", "main", 20) == "job-1"
        beats.join()
        ends = threading.Timer(0.7, report_job, [one, "job-1", 1, "succeeded"])
        ends.start()
        assert living_holder(other, "ads", "main", 20) == ""
        ends.join()
        lease.release()

    def test_that_of_a_job_that_ended_is_free_at_once(self, two_hosts: tuple[Home, Home]) -> None:
        one, other = two_hosts
        take_lease(running(one, "job-1")).release()
        report_job(one, "job-1", 1, "succeeded")
        began = time.monotonic()
        take_lease(running(other, "job-2")).release()
        assert time.monotonic() - began < 10

    def test_of_two_that_wait_one_gets_it(self, two_hosts: tuple[Home, Home]) -> None:
        one, other = two_hosts
        take_lease(running(one, "job-0")).release()
        third = Home(other.root.with_name("third"))
        waiting = [running(other, "job-1"), running(third, "job-2")]

        def got_it(made: JobRequest) -> bool:
            with suppress(LineBusyError):
                return take_lease(made, expired_seconds=1.0).epoch > 0
            return False

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(got_it, waiting)) == [False, True]
