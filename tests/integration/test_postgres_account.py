"""Which account runs PostgreSQL for root: real servers, with accounts of another machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.other_accounts import NAMED
from support.toy_roles.jobs import TESTS

from forebay.embedded.postgres.account import (
    OWN,
    SHARED,
    SHARED_REMEDY,
    account_for_root,
    hand_over,
)

NAMESPACE = ("unshare", "--mount", "--propagation", "private")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("unshare") is None
    or subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode != 0,
    reason="only root has accounts to choose from, and only in a mount namespace of its own",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("accounts")
    told = subprocess.run(
        [*NAMESPACE, sys.executable, "-m", "support.other_accounts", str(folder)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_an_account_is_made_and_announced(said: dict[str, Any]) -> None:
    assert said["doctor before"] == ["ok", f"{OWN}, an account that `forebay up` creates", ""]
    assert said["made"].startswith(f"created the account {OWN} to run PostgreSQL")
    assert f"userdel {OWN}" in said["made"]
    assert said["again"] is None
    assert said["doctor after"] == ["ok", OWN, ""]


@pytest.mark.parametrize(("how", "why"), [("read-only", "passwd"), ("no useradd", "no useradd")])
def test_where_none_can_be_made_a_shared_one_runs_it_with_a_warning(
    said: dict[str, Any], how: str, why: str
) -> None:
    assert said[how].startswith("warning: no account could be created for PostgreSQL (")
    assert why in said[how]
    assert SHARED_REMEDY in said[how]
    assert said["doctor without"] == ["warning", SHARED, SHARED_REMEDY]
    assert said["shared"] == {"user": SHARED, "number": 7, "owners": [SHARED]}


def test_data_of_the_shared_account_goes_to_the_one_that_was_made(said: dict[str, Any]) -> None:
    assert said["own"] == {"user": OWN, "number": 7, "owners": [OWN]}


@pytest.mark.guarantee(
    "files in the database of `forebay up` belong to another account (the last resort of an "
    "earlier start, a restored backup)",
    "nothing; they are handed over, or their owner runs the database",
)
def test_data_of_nobody_known_and_of_another_account_stay_usable(said: dict[str, Any]) -> None:
    assert said["restored"] == {"user": OWN, "number": 7, "owners": [OWN]}
    assert said["named"] == {"user": NAMED, "number": 7, "owners": [NAMED]}


def test_what_a_link_leads_to_is_never_handed_over(tmp_path: Path) -> None:
    """The old account may have put links into its folder; a backup may share its files."""
    secret = tmp_path / "secret"
    secret.write_text("root's")
    data = tmp_path / "data"
    (data / "base").mkdir(parents=True)
    (data / "base" / "own").write_text("")
    (data / "base" / "symbolic").symlink_to(secret)
    (data / "base" / "hard").hardlink_to(secret)
    (data / "folder").symlink_to(tmp_path)
    old, new = account_for_root(tmp_path / "nothing"), 54321
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "own").hardlink_to(data / "base" / "own")
    for path in (data, data / "base", data / "base" / "own"):
        os.chown(path, new, new)
    hand_over(data, old)
    assert {secret.stat().st_uid, tmp_path.stat().st_uid} == {0}
    owned = (data, data / "base", data / "base" / "own")
    assert [path.stat().st_uid for path in owned] == [old.uid] * 3
