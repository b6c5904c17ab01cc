"""A home of another version is refused with the way out; what holds no state is nobody's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from forebay.errors import ConfigError
from forebay.home.format import FORMAT, FORMAT_NAME, open_home, record_format, require_format
from forebay.home.paths import Home

WAY_OUT = r"[Mm]ove the folder away, or set FOREBAY_HOME to a new one, and train again"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def with_state(home: Home, name: str = "ledger", found: str | None = None) -> None:
    (home.root / name / "ads").mkdir(parents=True)
    if found is not None:
        (home.root / FORMAT_NAME).write_text(found)


def test_looking_at_a_new_home_makes_nothing(home: Home) -> None:
    require_format(home)
    assert not home.root.exists()


def test_the_first_writer_records_the_format(home: Home) -> None:
    record_format(home)
    assert (home.root / FORMAT_NAME).read_text() == f"{FORMAT}\n"
    with_state(home)
    require_format(home)
    record_format(home)


@pytest.mark.parametrize("name", ["ledger", "models", "jobs", "published"])
@pytest.mark.parametrize("act", [require_format, record_format])
def test_state_without_a_format_is_refused(home: Home, name: str, act: object) -> None:
    with_state(home, name)
    with pytest.raises(ConfigError, match=rf"{home.root} .* {name}/ without a format.*{WAY_OUT}"):
        act(home)  # type: ignore[operator]
    assert not (home.root / FORMAT_NAME).exists()


@pytest.mark.parametrize("found", ["1", "3", "two"])
def test_state_of_another_format_is_refused(home: Home, found: str) -> None:
    with_state(home, found=found)
    with pytest.raises(ConfigError, match=rf"ledger/ in format {found}, .*reads format {FORMAT}"):
        require_format(home)
    assert (home.root / FORMAT_NAME).read_text() == found


def test_an_empty_or_damaged_format_is_none(home: Home) -> None:
    with_state(home, found="")
    with pytest.raises(ConfigError, match="without a format"):
        require_format(home)
    (home.root / FORMAT_NAME).write_bytes(b"\xff\n")
    with pytest.raises(ConfigError, match="another version"):
        require_format(home)


def test_what_is_no_state_belongs_to_nobody(home: Home) -> None:
    for name in ("airflow", "kafka", "failed_runs"):
        (home.root / name / "more").mkdir(parents=True)
    (home.root / "ledger").mkdir()  # empty
    (home.root / FORMAT_NAME).write_text("1")
    require_format(home)
    record_format(home)
    assert (home.root / FORMAT_NAME).read_text() == f"{FORMAT}\n"


def test_first_writers_and_readers_do_not_refuse_each_other(tmp_path: Path) -> None:
    together = 8
    with ThreadPoolExecutor(together) as threads:
        for number in range(40):
            home, barrier = Home(tmp_path / str(number)), Barrier(together)

            def begin(writer: int, home: Home = home, barrier: Barrier = barrier) -> None:
                barrier.wait()
                record_format(home)
                (home.root / "ledger" / str(writer)).mkdir(parents=True)
                require_format(home)

            list(threads.map(begin, range(together)))
            assert {path.name for path in home.root.iterdir()} == {FORMAT_NAME, "ledger"}


def test_the_environments_home_is_opened(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(home.root))
    assert open_home() == home
    with_state(home)
    with pytest.raises(ConfigError, match=WAY_OUT):
        open_home()
