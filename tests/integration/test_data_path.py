"""The data path with real processes: row sums are exact whichever process is killed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import independent
from support.data_path import Counter, DataPath, serving
from support.projects import DAY, FIRST_DAY, ads_pipeline, history_source, write_history, write_log
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.errors import DataError, FencedError, ForebayError, InfrastructureError
from forebay.executors.data_executor.executor import DataExecutor
from forebay.executors.driver.driver import Driver
from forebay.executors.link.local import LocalLink
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.window_files.dead_letters import DeadLetter
from forebay.system.liveness import Activity, ActivityAges, activities

ROWS = 120_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for day in range(2):
        write_history(root / "data/history", FIRST_DAY + (day - 1) * DAY, ROWS, 4, seed=day)
        write_log(root / "data/clicks", FIRST_DAY + day * DAY, ROWS // 2, seed=day + 10)
    return root


@pytest.fixture
def path(data: Path, tmp_path: Path) -> Iterator[DataPath]:
    """The generated data below a project folder of its own."""
    (tmp_path / "data").symlink_to(data / "data")
    buffers = {"credits": 3, "chunk_rows": 4096, "rows_max": 16_384}
    pipeline = ads_pipeline(buffers=buffers)
    pipeline["train"]["minibatch_rows"] = 512
    made = DataPath.of(tmp_path, pipeline)
    made.plan("2026-03-01", "2026-03-02")
    yield made
    made.stop()


def expected(root: Path, day: int) -> list[independent.Sums]:
    """Row sums of a window, from the files alone."""
    batch = FIRST_DAY + (day - 1) * DAY
    first = int((FIRST_DAY + day * DAY).timestamp() * 1000)
    return [
        independent.parquet_sums(root / "data/history", files=f"date={batch:%Y-%m-%d}/*.parquet"),
        independent.log_sums(root / "data/clicks", first, first + 86_400_000),
    ]


@contextmanager
def reading(path: DataPath) -> Iterator[RemoteReader]:
    """A trainer's reader that has begun the first window."""
    window = path.windows[0]
    with closing(path.reader()) as reader:
        reader.begin(window.key, window.generation, {}, 0)
        yield reader


def in_order(path: DataPath) -> list[int]:
    """Index of history and clicks in the pipeline's sources."""
    names = path.pipeline.source_names
    return [names.index("history"), names.index("clicks")]


def assert_exact(path: DataPath, counter: Counter, days: list[int]) -> None:
    sums = counter.sums()
    found = [sums[index] for index in in_order(path)]
    wanted = [
        independent.added(*several)
        for several in zip(*(expected(path.root, day) for day in days), strict=True)
    ]
    assert found == wanted


def test_windows_follow_each_other_without_delay(path: DataPath) -> None:
    counter = Counter(path)
    with serving(path), closing(path.reader()) as reader:
        for window in path.windows:
            reader.begin(window.key, window.generation, {}, counter.steps)
            counter.consume(reader)
            reader.sealed(counter.steps, reader.progress())
        status = path.status()
        # Everything is sealed: opening it again is over at once, as for a window of 0 tasks.
        started = time.monotonic()
        reader.begin(window.key, window.generation, reader.progress(), counter.steps)
        assert reader.finished()
        assert time.monotonic() - started < 2
    assert_exact(path, counter, [0, 1])
    assert status.tasks["sealed"] == sum(status.tasks.values()) > 0
    assert status.rows_used == {"history": ROWS, "clicks": ROWS // 2}
    assert reader.dropped_rows() == 0
    hours = [hour for feed, hour, _ in counter.frames if feed == "batch"]
    assert max(hours) >= 20


@pytest.mark.parametrize("victim", ["data-0", "driver-0"])
def test_a_killed_process_loses_and_repeats_nothing(path: DataPath, victim: str) -> None:
    counter = Counter(path)
    total_steps = (ROWS + ROWS // 2) // 512

    def kill_midway(step: int) -> None:
        if step == total_steps // 2:
            path.kill(victim)

    with serving(path), reading(path) as reader:
        counter.consume(reader, after_step=kill_midway)
        reader.sealed(counter.steps, reader.progress())
        status = path.status()
        read_again = reader.dropped_rows()
    assert_exact(path, counter, [0])
    assert counter.steps >= total_steps  # the trainer went on counting in this very process
    assert read_again <= 2 * 3 * 512  # executors x credits x minibatch
    assert status.incarnation == (2 if victim == "driver-0" else 1)
    assert status.tasks["sealed"] == sum(status.tasks.values())


def test_executor_and_driver_die_together(path: DataPath) -> None:
    counter = Counter(path)

    def kill_both(step: int) -> None:
        if step == 100:
            path.processes["data-1"].kill()
            path.kill("driver-0")
            path.kill("data-1")

    with serving(path), reading(path) as reader:
        counter.consume(reader, after_step=kill_both)
    assert_exact(path, counter, [0])


def test_a_new_trainer_starts_from_the_seal_and_fences_the_old(path: DataPath) -> None:
    window, first, second = path.windows[0], Counter(path), Counter(path)
    with serving(path), reading(path) as old, closing(path.reader()) as new:
        while first.steps < 100:
            first.use(old, there(old.next(5.0)))
        sealed, model = old.progress(), first.learner.seen()
        old.sealed(first.steps, sealed)
        while first.steps < 150:  # learnt, but not sealed
            first.use(old, there(old.next(5.0)))
        new.begin(window.key, window.generation, sealed, 100)
        second.consume(new)
        with pytest.raises(FencedError):
            [old.next(1.0) for _ in range(20)]
        with pytest.raises(FencedError):
            old.begin(window.key, window.generation, sealed, 100)
    both = [
        independent.added(one.model_dump(), two)
        for one, two in zip(model, second.sums(), strict=True)
    ]
    assert [both[index] for index in in_order(path)] == expected(path.root, 0)


def test_a_stopped_executor_that_comes_back_is_fenced(path: DataPath) -> None:
    """SIGSTOP: its leases expire; what it still sends after SIGCONT is refused."""
    changed = path.pipeline.model_dump(mode="json")
    changed["job"]["failover"]["heartbeat_timeout"] = "1s"
    slow = DataPath.of(path.root, changed)
    slow.plan("2026-03-01", "2026-03-01")
    counter = Counter(slow)

    def stop_and_wake(step: int) -> None:
        if step == 10:  # early, so that it surely holds rows that others wait for
            process = slow.processes["data-0"]
            process.send_signal(signal.SIGSTOP)
            threading.Timer(2.5, process.send_signal, [signal.SIGCONT]).start()

    with serving(slow):
        # A lone one would be given every task.
        eventually(lambda: slow.log("driver-0").count("registered, pid") >= 2)
        with reading(slow) as reader:
            counter.consume(reader, after_step=stop_and_wake)
        assert "is silent" in slow.log("driver-0")
    assert_exact(slow, counter, [0])


def test_bad_data_reaches_the_trainer_with_its_cause(tmp_path: Path) -> None:
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 20_000)
    file = next((tmp_path / "data/history").rglob("*.parquet"))
    _without_labels(file, lambda row: row == 77)
    path = _history_only(tmp_path)
    told = f"{file.name}.*row 77.*the label is null"
    with serving(path, executors=1), reading(path) as reader, pytest.raises(DataError, match=told):
        Counter(path).consume(reader)


def _without_labels(file: Path, of_row: Callable[[int], bool]) -> None:
    table = pq.read_table(file)
    nulls = pa.array([None if of_row(row) else 1 for row in range(len(table))], pa.int64())
    changed = table.set_column(table.column_names.index("clicked"), "clicked", nulls)
    pq.write_table(changed, file, row_group_size=5000)


def _without_some_labels(root: Path) -> None:
    """40,000 rows in two files; each hundredth row of a file has no label."""
    write_history(root / "data/history", FIRST_DAY - DAY, 40_000, files=2)
    for file in (root / "data/history").rglob("*.parquet"):
        _without_labels(file, lambda row: row % 100 == 0)


def test_rows_without_label_become_dead_letters_once(tmp_path: Path) -> None:
    _without_some_labels(tmp_path)
    path = _history_only(tmp_path, label_null="dead_letter")
    counter = Counter(path)

    def kill(step: int) -> None:
        if step == 10:
            path.kill("data-0")

    with serving(path, executors=1), reading(path) as reader:
        counter.consume(reader, after_step=kill)
        progress = reader.progress()
    assert sum(each.rows_read for each in progress.values()) == 40_000
    assert sum(each.dead_rows for each in progress.values()) == 400
    files = path.root / "data/history"
    assert counter.sums() == [independent.parquet_sums(files, "clicked is not null")]
    letters = [DeadLetter.model_validate_json(each.line) for each in counter.letters]
    places = sorted(
        (Path(str(each.location["file"])).name, each.location["row"]) for each in letters
    )
    assert places == [(f"part-{n}.parquet", row) for n in (0, 1) for row in range(0, 20_000, 100)]
    assert all(isinstance(letter.row, dict) and letter.row["user"] for letter in letters)


def test_too_many_dead_letters_end_the_window(tmp_path: Path) -> None:
    _without_some_labels(tmp_path)
    limited = _history_only(tmp_path, label_null="dead_letter", dead_letter_rows_max=250)
    told = pytest.raises(DataError, match="dead_letter_rows_max")
    with serving(limited, executors=1), reading(limited) as reader, told:
        Counter(limited).consume(reader)


@contextmanager
def served_here(path: DataPath) -> Iterator[None]:
    """Driver and data executor in this process, so that their activities are seen."""
    driver = Driver(LocalLink(path.job_dir, "driver"), path.attempt("driver-0"))
    driver.start()
    executor = DataExecutor(LocalLink(path.job_dir, "data"), 1)

    def run() -> None:
        with suppress(ForebayError), Activity("data"):
            executor.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        executor.close()
        driver.stop()
        thread.join(30)


def stillest(before: set[Activity]) -> float:
    """For how many seconds of one and a half an activity has not got on."""
    ages, still = ActivityAges(), 0.0
    for _ in range(30):
        time.sleep(0.05)
        still = ages.look(set(activities()) - before, 0.05, 0.0).seconds
    return still


def test_a_trainer_that_goes_away_in_mid_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves nothing that looks like a hang."""
    monkeypatch.setattr("forebay.executors.data_executor.task_runner.WAIT_SECONDS", 0.1)
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 6_000)
    pipeline = ads_pipeline(buffers={"credits": 2, "chunk_rows": 512, "rows_max": 1024})
    del pipeline["dataset"]["streams"]["clicks"]
    pipeline["train"]["minibatch_rows"] = 128
    path = DataPath.of(tmp_path, pipeline, {"history": history_source()})
    path.plan("2026-03-01", "2026-03-01")
    before, counter = set(activities()), Counter(path)
    with served_here(path):
        gone = path.reader()
        gone.begin("2026-03-01", 1, {}, 0)
        for _ in range(3):
            gone.used(there(gone.next(30)))
        gone.close()  # its stream has credit, and a beat is being answered
        assert len(set(activities()) - before) >= 3, "somebody reads, and waits for room"
        assert stillest(before) < 0.75
        reader = path.reader()
        reader.begin("2026-03-01", 1, {}, 0)
        counter.consume(reader)
        reader.close()
        assert stillest(before) < 0.75
    assert counter.sums() == [independent.parquet_sums(path.root / "data/history")]
    eventually(lambda: set(activities()) <= before)


def test_a_file_that_vanished_is_tried_again_and_then_named(tmp_path: Path) -> None:
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 2_000, files=1)
    path = _history_only(tmp_path)
    file = next((tmp_path / "data/history").rglob("*.parquet"))
    file.unlink()
    named = pytest.raises((InfrastructureError, DataError), match=file.name)
    with serving(path, executors=1), reading(path) as reader, named:
        Counter(path).consume(reader)


def _history_only(root: Path, **changes: object) -> DataPath:
    pipeline = ads_pipeline()
    del pipeline["dataset"]["streams"]["clicks"]
    path = DataPath.of(root, pipeline, {"history": history_source(**changes)})
    path.plan("2026-03-01", "2026-03-01")
    return path


def test_a_reader_that_is_closed_while_it_opens_a_window_waits_for_no_row(
    path: DataPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever closes it ends what reads: it waited for the next frame for ever."""
    window = path.windows[0]
    path.start("driver")
    open_window = RemoteReader._open
    with closing(path.reader()) as reader:

        def opened(self: RemoteReader, *arguments: object) -> object:
            answer = open_window(self, *arguments)  # type: ignore[arg-type]
            reader.close()
            return answer

        monkeypatch.setattr(RemoteReader, "_open", opened)
        with pytest.raises(InfrastructureError, match="the reader is closed"):
            reader.begin(window.key, window.generation, {}, 0)
        with pytest.raises(InfrastructureError):
            reader.next(60)
