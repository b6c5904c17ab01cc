"""Who can enter a home: created closed, closed if open, refused if somebody else's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from forebay.errors import ConfigError, InfrastructureError
from forebay.home import privacy
from forebay.home.database.format import require_format
from forebay.home.paths import Home
from forebay.home.privacy import close_home, exposed, make_home, mode_text, require_own
from forebay.home.store.open import store_of


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def become(user: int, monkeypatch: pytest.MonkeyPatch, *trusted: int) -> None:
    """Another user, who trusts itself unless told otherwise."""
    monkeypatch.setattr(privacy, "_trusted", lambda: trusted or (user,))
    monkeypatch.setattr(privacy.os, "geteuid", lambda: user)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "folder" / "home")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_home_is_made_for_its_user_alone(home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert close_home(home) == ""
    finally:
        os.umask(before)
    assert (mode(home.root), mode(home.root.parent)) == (0o700, 0o777 & ~umask)


@pytest.mark.parametrize(
    ("open_mode", "closed"), [(0o755, 0o700), (0o777, 0o700), (0o711, 0o700), (0o2775, 0o2700)]
)
def test_what_others_can_enter_is_closed(home: Home, open_mode: int, closed: int) -> None:
    make_home(home)
    home.root.chmod(open_mode)
    assert close_home(home) == (
        f"{home.root} was open to other users (mode {open_mode:04o}): its mode is {closed:04o} now"
    )
    assert mode(home.root) == closed


@pytest.mark.parametrize("shared", [0o750, 0o2770, 0o710])
def test_what_a_group_was_let_into_stays(home: Home, shared: int) -> None:
    make_home(home)
    home.root.chmod(shared)
    assert (close_home(home), mode(home.root)) == ("", shared)
    assert "shared with its group" in mode_text(home.root)


@pytest.mark.guarantee(
    "a home that another user made and owns, whatever its mode", "it is refused, with what to do"
)
@pytest.mark.parametrize("shared", [0o755, 0o700, 0o770])
def test_a_home_of_somebody_else_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, shared: int
) -> None:
    """One that waits below /tmp, say: its owner can exchange all that is written to it."""
    make_home(home)
    home.root.chmod(shared)
    become(os.geteuid() + 1, monkeypatch)
    with pytest.raises(ConfigError, match=r"belongs to .* set FOREBAY_HOME .*chown -R "):
        close_home(home)
    assert mode(home.root) == shared
    assert [one.severe for one in exposed(home)] == [True, *[False] * len(home.root.parents)]


def test_a_store_of_somebody_else_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    monkeypatch.setenv("FOREBAY_STORE", str(store))
    store_of(home)  # whoever writes to it first makes it
    store.mkdir(mode=0o777)
    require_own(store, "FOREBAY_STORE")
    become(os.geteuid() + 1, monkeypatch)
    elsewhere = Home(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"FOREBAY_STORE: .* belongs to .*[(]chown -R "):
        store_of(elsewhere)


def test_a_home_of_roots_that_a_group_shares_is_used(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A volume is mounted like that: root's, and its group's."""
    make_home(home)
    home.root.chmod(0o2770)
    become(54321, monkeypatch, 0, os.getuid())
    assert close_home(home) == ""


@pytest.mark.parametrize("open_mode", [0o777, 0o1777])
def test_a_folder_in_which_everybody_can_exchange_a_home_is_named(
    home: Home, open_mode: int
) -> None:
    make_home(home)
    home.root.parent.chmod(open_mode)
    found = [(one.path, one.remedy) for one in exposed(home)]
    sticky = open_mode & stat.S_ISVTX
    assert found == ([] if sticky else [(home.root.parent, f"chmod o-w {home.root.parent}")])


@pytest.mark.parametrize("kind", ["file", "pipe", "below a file", "circle"])
def test_what_can_be_no_home_is_refused_with_the_way_out(home: Home, kind: str) -> None:
    place = home.root.parent if kind == "below a file" else home.root
    place.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "circle":
        place.symlink_to(place)
    else:
        place.touch()
    for use in (make_home, require_format):
        with pytest.raises(ConfigError, match=rf"^{place} is .*set FOREBAY_HOME to another one$"):
            use(home)


def test_a_file_system_without_modes_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_home(home)
    home.root.chmod(0o755)
    monkeypatch.setattr(privacy.os, "fchmod", lambda *_: None)
    with pytest.raises(InfrastructureError, match="does not keep modes: mount it for this user"):
        close_home(home)


def test_a_link_that_leads_nowhere_is_named(home: Home, tmp_path: Path) -> None:
    home.root.parent.mkdir()
    home.root.symlink_to(tmp_path / "gone")
    with pytest.raises(ConfigError, match=r"is a link to .*gone, which does not exist: create"):
        close_home(home)
    assert not (tmp_path / "gone").exists()


def test_what_others_can_get_at_is_found_with_its_remedy(home: Home, tmp_path: Path) -> None:
    assert exposed(home) == []
    make_home(home)
    assert exposed(home) == []
    letters = home.model("ads", "main", "2026-03-01", 1) / "dead" / "letters.jsonl"
    letters.parent.mkdir(parents=True)
    letters.write_text("{}\n")
    letters.chmod(0o640)
    outside = tmp_path / "store"
    outside.mkdir(mode=0o700)
    outside.chmod(0o744)
    found = exposed(home, outside)
    assert [(one.path, one.severe) for one in found] == [(outside, False), (letters, False)]
    assert found[1].remedy == f"chmod 600 {letters}"
    home.root.chmod(0o770)
    assert "chmod g-w" in exposed(home)[0].remedy
