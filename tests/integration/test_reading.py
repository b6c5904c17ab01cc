"""Readings with real processes: whichever is killed, each row comes once, and nothing is left."""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from support import independent
from support.kill_cases import expected
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, ads_project, write_history
from support.strangers import until
from support.there import there

from forebay.errors import ConfigError, DataError, InfrastructureError, UsageError
from forebay.executors.reading import opening
from forebay.reading import WindowRows, read_windows

ROWS = 30_000
MINIBATCH = 512
LEFT = f"{opening.FOLDER_PREFIX}*"
WINDOWS = {"first": "2026-03-01", "last": "2026-03-01"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("stored"), rows=ROWS)


@pytest.fixture
def project(stored: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The stored rows below a project of its own; whatever a reading leaves is found."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/data").symlink_to(stored.root / "data")
    made = Project(tmp_path / "project", small(ads_pipeline()))
    shutil.copytree(stored.root / "config", made.root / "config")
    made.write_pipeline()
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("FOREBAY_HOME", str(home))
    yield made
    assert list(temporary.glob(LEFT)) == []
    assert not home.exists(), "a reading writes nothing to FOREBAY_HOME"
    assert serving_processes() == {}


def small(pipeline: dict[str, object]) -> dict[str, object]:
    """Small minibatches and buffers, so that a kill finds rows everywhere."""
    job = {
        "buffers": {"credits": 3, "chunk_rows": 4096, "rows_max": 16_384},
        "failover": {"heartbeat_timeout": "2s"},
    }
    return {**pipeline, "job": job, "train": {"paradigm": "mixture", "minibatch_rows": MINIBATCH}}


def opened(project: Project, position: str | None = None) -> WindowRows:
    return read_windows(project.root / "config", "ads", **WINDOWS, position=position)


def serving_processes(of: int | None = None) -> dict[str, psutil.Process]:
    """Drivers and data executors below a process, by what they are."""
    found = {}
    for each in psutil.Process(of).children(recursive=True):
        with suppress(psutil.Error):  # it ends just now
            command = " ".join(each.cmdline())
            for role in ("driver", "data_executor"):
                if f"forebay.executors.{role}" in command:
                    found[role] = each
    return found


def stored_sums(project: Project) -> independent.Sums:
    return independent.added(*expected(project).values())


def ids_of(rows: WindowRows, most: int = 1 << 30) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for arrays in rows.numpy():
        found.append(np.array(arrays["row_id"]))
        if len(found) >= most:
            break
    return found


@pytest.mark.guarantee(
    "the driver or a data executor of a [reading](../reader.md) dies",
    "each row comes once; read again: frames in flight",
)
@pytest.mark.parametrize("victim", ["data_executor", "driver"])
def test_a_killed_process_loses_and_repeats_nothing(project: Project, victim: str) -> None:
    with opened(project) as rows:
        found = ids_of(rows, 2 * ROWS // MINIBATCH // 2)
        serving_processes()[victim].kill()
        found += ids_of(rows)
    assert independent.sums(found) == stored_sums(project)


@pytest.mark.guarantee(
    "a program that reads windows dies",
    "nothing, if the position was stored in one piece with what was made of the rows; read "
    "again: what came after that position",
)
def test_a_position_continues_in_another_process_exactly_there(project: Project) -> None:
    with opened(project) as rows:
        found = ids_of(rows, 20)
        position = rows.position()
        ids_of(rows, 10)  # whoever dies here never stored what it made of these
    with opened(project, position) as rows:
        found += ids_of(rows)
        over = rows.position()
    assert independent.sums(found) == stored_sums(project)
    with opened(project, over) as rows:
        assert ids_of(rows) == []


def test_a_position_is_refused_where_the_data_has_changed(tmp_path: Path) -> None:
    project = ads_project(tmp_path, rows=500, pipeline=small(ads_pipeline()))
    with opened(project) as rows:
        position = rows.position()
    write_history(project.files, FIRST_DAY - DAY, 700, seed=9)
    with pytest.raises(DataError, match="window 2026-03-01 has changed"), opened(project, position):
        pass
    assert serving_processes() == {}


def test_who_is_killed_while_it_reads_leaves_no_process(project: Project, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "from forebay.reading import read_windows\n"
        "with read_windows(sys.argv[1], 'ads', first='2026-03-01', last='2026-03-01') as rows:\n"
        "    next(iter(rows.numpy()))\n"
        "    print('reading', flush=True)\n"
        "    time.sleep(120)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, program, project.root / "config"], stdout=subprocess.PIPE, env=environment
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        served = serving_processes(reader.pid)
        assert set(served) == {"driver", "data_executor"}
        reader.send_signal(signal.SIGKILL)
        reader.wait(10)
    processes = served.values()
    ended = psutil.STATUS_ZOMBIE
    assert until(lambda: not any(p.is_running() and p.status() != ended for p in processes), 10)


def test_what_is_read_ahead_is_bounded(project: Project) -> None:
    """Who stops asking gets no more than its credits, and the executor stops decoding."""
    with opened(project) as rows:
        ids_of(rows, 1)
        executor = serving_processes()["data_executor"]
        spent: list[float] = []

        def rests() -> bool:
            spent.append(sum(executor.cpu_times()[:2]))
            return len(spent) > 5 and spent[-1] - spent[-5] < 0.05

        assert until(rests, 60)
        session = there(rows._reading)._opened.reader._current()
        queued = [
            frame.rows for queue in session.inbox._epochs.values() for _, frame in queue.frames
        ]
        assert 0 < sum(queued) <= 3 * MINIBATCH
        ids_of(rows)


def test_rows_are_there_inside_of_with_only(project: Project) -> None:
    rows = opened(project)
    with pytest.raises(UsageError, match="only inside"):
        next(rows.numpy())
    with rows:
        ids_of(rows, 1)
        iterator = rows.arrow()
        next(iterator)
    for call in (rows.position, lambda: next(iterator), lambda: rows.window):
        with pytest.raises(UsageError, match="only inside"):
            call()
    with pytest.raises(UsageError, match="already read"), rows:
        pass


def test_a_forked_process_neither_takes_rows_nor_ends_them(project: Project) -> None:
    """It has a copy of what was received: handed out there too, rows would come twice."""
    with opened(project) as rows:
        iterator = rows.numpy()
        found = [np.array(next(iterator)["row_id"])]
        ends = [in_a_fork(each) for each in (lambda: next(iterator), rows.position)]
        assert ends == ["UsageError", "UsageError"]
        assert in_a_fork(lambda: rows.__exit__(None, None, None)) == "returned"
        (folder,) = Path(tempfile.gettempdir()).glob(LEFT)
        assert (folder / "jobs").is_dir()
        found += ids_of(rows)
    assert independent.sums(found) == stored_sums(project)


def in_a_fork(call: Callable[[], object]) -> str:
    """How a call ends in a forked process: an error's name, or that it returned."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call()
            os.write(sending, b"returned")
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(sending, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as told:
        ready, _, _ = select.select([told], [], [], 20)
        if not ready:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return told.read().decode() or "nothing"


def test_rows_that_are_thrown_away_inside_of_with_leave_nothing(project: Project) -> None:
    rows = opened(project)
    rows.__enter__()
    ids_of(rows, 1)
    assert set(serving_processes()) == {"driver", "data_executor"}
    del rows
    gc.collect()
    assert until(lambda: serving_processes() == {}, 10)


def test_an_interrupted_take_ends_the_rows_and_not_the_position(project: Project) -> None:
    with opened(project) as rows:
        found = ids_of(rows, 5)
        reader = there(rows._reading)._opened.reader
        take = reader.next

        def interrupted(seconds: float) -> object:
            take(seconds)
            raise KeyboardInterrupt

        reader.next = interrupted  # type: ignore[assignment, method-assign]
        with pytest.raises(KeyboardInterrupt):
            next(rows.numpy())
        with pytest.raises(InfrastructureError, match="was interrupted while it took rows"):
            next(rows.numpy())
        position = rows.position()
    with opened(project, position) as rows:
        found += ids_of(rows)
    assert independent.sums(found) == stored_sums(project)


def test_the_home_is_no_part_of_it_whatever_the_environment_names(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes neither open the shared database nor write to the shared store."""
    monkeypatch.setenv("FOREBAY_DATABASE", "postgresql://nobody@127.0.0.1:9/none")
    monkeypatch.setenv("FOREBAY_STORE", str(tmp_path / "shared"))
    with opened(project) as rows:
        found = ids_of(rows)
    assert independent.sums(found) == stored_sums(project)
    assert not (tmp_path / "shared").exists()


def test_on_the_plane_inline_threads_serve_the_same_rows(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pipeline["job"]["plane"] = "inline"
    project.write_pipeline()
    monkeypatch.setenv("FOREBAY_DATABASE", "postgresql://nobody@127.0.0.1:9/none")
    monkeypatch.setenv("FOREBAY_STORE", str(tmp_path / "shared"))
    with opened(project) as rows:
        found = ids_of(rows, 12)
        assert serving_processes() == {}
        assert {"driver-0", "data-0"} <= {each.name for each in threading.enumerate()}
        position = rows.position()
    with opened(project, position) as rows:
        found += ids_of(rows)
    assert independent.sums(found) == stored_sums(project)
    assert not {"driver-0", "data-0"} & {each.name for each in threading.enumerate()}


def test_processes_that_cannot_start_say_why(project: Project) -> None:
    python = {"python": "/nowhere/python"}
    project.pipeline["job"]["roles"] = {"data": {"runtime": python}}
    project.write_pipeline()
    with pytest.raises(ConfigError, match="/nowhere/python"), opened(project):
        pass


def test_processes_that_end_again_and_again_end_the_rows(project: Project) -> None:
    project.pipeline["job"]["failover"]["restarts_max"] = 1
    project.write_pipeline()
    with opened(project) as rows:
        ids_of(rows, 1)

        def is_given_up() -> bool:
            if (driver := serving_processes().get("driver")) is not None:
                driver.kill()
            return there(rows._reading)._opened.processes._error is not None

        assert until(is_given_up, 60)
        with pytest.raises(InfrastructureError, match="driver-0 was ended by SIGKILL") as failed:
            next(rows.numpy())
        assert "driver-0.log ends with:" in "\n".join(failed.value.__notes__)


def test_an_error_leaves_the_dataset_as_what_it_was(project: Project) -> None:
    import tensorflow as tf

    def bad() -> None:
        raise DataError("of a bad row")

    def read_on() -> None:
        with opened(project) as rows:
            found = iter(rows.as_dataset())
            next(found)
            there(rows._reading).next = bad  # type: ignore[assignment, method-assign]
            list(found)

    with pytest.raises(DataError, match="of a bad row") as failed:
        read_on()
    assert isinstance(failed.value.__cause__, tf.errors.OpError)


def test_a_second_pass_over_the_dataset_says_that_there_is_one(project: Project) -> None:
    told = "call read_windows again for another pass"
    with pytest.raises(UsageError, match=told), opened(project) as rows:
        assert sum(1 for _ in rows.as_dataset().repeat(2)) == 0
