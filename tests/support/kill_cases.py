"""What every kill has to leave behind, for a window of any size on a log or on Kafka."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home
from support import independent
from support.kills import (
    kill_role,
    kill_tree,
    no_process_left,
    pid_of,
    running,
    summary_of,
    wait_for_ends,
    wait_for_rows,
)
from support.projects import DAY, FIRST_DAY, Project
from support.there import until
from support.truth_rows import stored_of

WINDOW = "2026-03-01"
CHECKPOINT_STEPS = 50
MINIBATCH_ROWS = 1024
CREDITS = 4
COMMIT_SECONDS = 15.0
_END_MS = int((FIRST_DAY + DAY).timestamp() * 1000)

Act = Callable[[], object]


@dataclass
class KillCase:
    """One window with `rows` rows of each of its two sources, and a home of its own."""

    project: Project
    rows: int
    checkpoint_steps: int = CHECKPOINT_STEPS
    executors: int = 1

    @property
    def summary(self) -> Path:
        return self.project.home / "summary.json"

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("run", "ads", "--from", WINDOW, "--to", WINDOW, "--summary", str(self.summary))

    @property
    def interval_rows(self) -> int:
        return self.checkpoint_steps * MINIBATCH_ROWS

    @property
    def credit_rows(self) -> int:
        return self.executors * CREDITS * MINIBATCH_ROWS

    def run(self, *acts: Act, end_seconds: float = 150) -> dict[str, Any]:
        """Start a run, act one after another between 30% and 70% of the rows, wait for its end."""
        part = 0.4 / max(1, len(acts))
        shares = [0.3 + part * (number + random.random()) for number in range(len(acts))]
        with running(self.project, *self.arguments) as run:
            for share, act in zip(shares, acts, strict=True):
                wait_for_rows(self.project, WINDOW, int(share * 2 * self.rows), run)
                act()
            output, _ = run.communicate(timeout=end_seconds)
            assert run.returncode == 0, f"killed at {shares}: {output}"
        return summary_of(self.summary)

    def kill(self, *roles: str) -> Act:
        """Kills one process of each role, all of them before any is waited for."""
        return lambda: wait_for_ends([kill_role(self.project, role) for role in roles])

    # What died, and what has to be true afterwards ------------------------------------------

    def trainer(self, times: int = 1) -> None:
        self._resumed(("trainer",), times * self.interval_rows, times)

    def driver_and_trainer(self) -> None:
        self._resumed(("driver", "trainer"), self.interval_rows + self.credit_rows)

    def supervisor(self) -> None:
        self._resumed(("supervisor",), None)

    def _resumed(self, roles: Sequence[str], reread_max: int | None, times: int = 1) -> None:
        summary = self.run(*[self.kill(*roles)] * times)
        window = summary["windows"][0]
        assert window["resumed_from_step"] > 0
        assert reread_max is None or 0 <= window["reread_rows"] <= reread_max
        assert [summary["restarts"][role] for role in roles] == [times] * len(roles)
        self.assert_exact(summary)

    def data_side(self, role: str) -> None:
        before = {}

        def act() -> None:
            before["trainer"] = pid_of(self.project, "trainer-0")
            kill_role(self.project, role)

        summary = self.run(act)
        assert summary["restarts"][role] == 1
        self.assert_trainer_unbroken(summary, before["trainer"])
        self.assert_exact(summary)

    def everything(self) -> None:
        share = random.uniform(0.3, 0.7)
        with running(self.project, *self.arguments) as run:
            wait_for_rows(self.project, WINDOW, int(share * 2 * self.rows), run)
            kill_tree(self.project, run)
        assert not self.summary.exists()
        if self.project.topic is not None:
            self.assert_not_ahead_of_the_seal()
        self.project.forebay(*self.arguments)
        summary = summary_of(self.summary)
        assert summary["windows"][0]["resumed_from_step"] > 0
        assert 0 <= summary["windows"][0]["reread_rows"] <= self.interval_rows
        self.assert_exact(summary)

    # Assertions -----------------------------------------------------------------------------

    def assert_trainer_unbroken(self, summary: dict[str, Any], pid: int) -> None:
        """Only frames in flight were read again; the trainer's process and step went on."""
        window = summary["windows"][0]
        assert summary["restarts"]["trainer"] == 0
        progress = max((self.project.home / "jobs").glob("*/progress.json"))
        assert json.loads(progress.read_text())["pid"] == pid
        assert window["resumed_from_step"] == 0
        assert 0 <= window["reread_rows"] <= self.credit_rows

    def assert_exact(self, summary: dict[str, Any]) -> None:
        assert summary["seen"] == expected(self.project)
        assert summary["rows_agree"] is True
        for source in summary["windows"][0]["sources"].values():
            assert source["trained_rows"] == source["served_rows"] == self.rows
        assert no_process_left(self.project)
        if self.project.topic is not None:
            topic = self.project.topic
            ends = independent.kafka_ends(topic.bootstrap, topic.name, _END_MS)
            assert sealed_offsets(self.project) == ends
            assert committed(self.project) == ends

    def assert_not_ahead_of_the_seal(self) -> None:
        """A commit follows its seal; a kill between the two leaves the older offsets."""
        sealed = sealed_offsets(self.project)
        assert sealed, "no checkpoint was sealed before the kill"
        for partition, offset in committed(self.project).items():
            assert 0 < offset <= sealed[partition]


def expected(
    project: Project, day: int = 0, history_where: str = "true"
) -> dict[str, independent.Sums]:
    """Sums of a window's rows by tools that share nothing with Forebay."""
    start = FIRST_DAY + day * DAY
    first_ms, end_ms = (int(at.timestamp() * 1000) for at in (start, start + DAY))
    history, topic = f"date={start - DAY:%Y-%m-%d}/*.parquet", project.topic
    return {
        "history": independent.parquet_sums(project.files, history_where, history),
        "clicks": (
            independent.kafka_sums(topic.bootstrap, topic.name, first_ms, end_ms)
            if topic
            else independent.added(
                independent.log_sums(project.log, first_ms, end_ms),
                independent.line_sums(project.log, f"date={start:%Y-%m-%d}/*.json.gz"),
            )
        ),
    }


def expected_of(project: Project, days: int) -> dict[str, independent.Sums]:
    """The same of the first windows together: what a model has seen after them."""
    every = [expected(project, day) for day in range(days)]
    return {name: independent.added(*(one[name] for one in every)) for name in every[0]}


def assert_exact(project: Project) -> Link:
    """The first plan's link of the window holds its rows, as tools of others count them."""
    link = ModelChain(Home(project.home), "ads").newest(WINDOW)
    assert link is not None
    assert link.generation == 1
    trained = {name: link.trained(name) for name in link.seen}
    assert {name: (each.rows, each.sum) for name, each in trained.items()} == {
        name: (each["rows"], each["sum"]) for name, each in expected(project).items()
    }
    return link


def committed(project: Project) -> dict[int, int]:
    assert project.topic is not None
    topic = project.topic
    return independent.kafka_committed(topic.bootstrap, topic.name, "forebay.ads")


def sealed_offsets(project: Project, window: str = WINDOW) -> dict[int, int]:
    """For each partition the first offset that the newest checkpoint does not hold as a whole."""
    local = project.home / "training" / "ads" / "main" / window / "g1"
    seals = sorted((local / "checkpoints").glob("[0-9]*/seal.json"))
    final = stored_of(project.home, "ads", window, "checkpoint")
    if final is not None:
        seals.append(final / "seal.json")
    if not seals:
        return {}
    progress = json.loads(seals[-1].read_text())["progress"]
    tasks = Ledger(Home(project.home), "ads").tasks(window, 1)
    partitions = dict(
        zip(tasks["task_id"].to_pylist(), tasks["partition"].to_pylist(), strict=True)
    )
    return {
        int(partitions[task_id]): each["position"][0]
        for task_id, each in progress.items()
        if task_id.startswith("clicks/")
    }


def settles_at_the_seal(project: Project) -> bool:
    """Whether the committed offsets become those of the newest seal while nothing is sealed."""
    return until(lambda: committed(project) == sealed_offsets(project), COMMIT_SECONDS, 0.2)
