"""A home of another version is refused with what to do; a folder without state is accepted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from support.there import there

from forebay.errors import ConfigError, DataError
from forebay.home.database.format import open_home, record_format, require_format
from forebay.home.database.identity import MARKER_NAME, Marker
from forebay.home.database.tables import FORMAT
from forebay.home.paths import Home

WAY_OUT = "restore it from a backup, correct FOREBAY_DATABASE, or set FOREBAY_HOME to a new folder"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def with_state(home: Home, name: str = "training") -> None:
    (home.root / name / "ads").mkdir(parents=True)


def test_the_first_writer_makes_the_home_and_no_reader(home: Home) -> None:
    require_format(home)
    assert not home.root.exists()
    record_format(home)
    found = there(Marker.of_file(home.root / MARKER_NAME))
    assert (found.format, found.database) == (FORMAT, "sqlite")
    with_state(home)
    require_format(home)
    record_format(home)
    assert Marker.of_file(home.root / MARKER_NAME) == found


@pytest.mark.parametrize("name", ["jobs", "training"])
@pytest.mark.parametrize("act", [require_format, record_format])
def test_a_home_that_lost_marker_and_database_is_refused(
    home: Home, name: str, act: Callable[[Home], None]
) -> None:
    with_state(home, name)
    lost = rf"{home.root} has lost its home\.json and its database, but holds {name}: {WAY_OUT}"
    with pytest.raises(ConfigError, match=lost):
        act(home)
    assert not (home.root / MARKER_NAME).exists()


@pytest.mark.parametrize("found", [f"{int(FORMAT) + more}" for more in (-2, -1, 1, 5)])
def test_another_format_is_refused(home: Home, found: str) -> None:
    home.root.mkdir()
    marker = Marker(id="x", format=found, database="sqlite")
    (home.root / MARKER_NAME).write_text(marker.model_dump_json())
    with pytest.raises(ConfigError) as refused:
        require_format(home)
    assert str(refused.value) == (
        f"{home.root} has format {found} (home.json), but this version of Forebay needs format "
        f"{FORMAT}: use the version that wrote it, or set FOREBAY_HOME (and FOREBAY_DATABASE, if "
        "you use it) to a new one"
    )


def test_a_damaged_marker_is_named(home: Home) -> None:
    home.root.mkdir()
    (home.root / MARKER_NAME).write_text("")
    with pytest.raises(DataError, match=MARKER_NAME):
        require_format(home)


def test_what_is_no_state_belongs_to_nobody(home: Home) -> None:
    for name in ("airflow", "kafka"):
        (home.root / name / "more").mkdir(parents=True)
    (home.root / "jobs").mkdir()  # empty
    require_format(home)
    record_format(home)
    assert (home.root / MARKER_NAME).is_file()


def test_the_environments_home_is_opened(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(home.root))
    assert open_home() == home
    with_state(home)
    with pytest.raises(ConfigError, match=WAY_OUT):
        open_home()


def test_first_writers_and_readers_do_not_refuse_each_other(tmp_path: Path) -> None:
    together = 8
    with ThreadPoolExecutor(together) as threads:
        for number in range(20):
            home, barrier = Home(tmp_path / str(number)), Barrier(together)

            def begin(writer: int, home: Home = home, barrier: Barrier = barrier) -> None:
                barrier.wait()
                record_format(home)
                (home.root / "jobs" / str(writer)).mkdir(parents=True)
                require_format(home)

            list(threads.map(begin, range(together)))
            assert len(list((home.root / "jobs").iterdir())) == together
