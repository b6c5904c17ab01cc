"""A process dies, or power is lost, at thirty points of three windows' whole life: the next start
goes on, exactly. In each of them a row that names what is not on the disk ends the process."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.python_code import TESTS
from support.synced import tree_at
from support.whole_life.attempts import attempts
from support.whole_life.watched_disk import WatchedDisk

pytestmark = pytest.mark.timeout(600)
POINTS = 30
CUTS = 15
# Of the three windows, two are trained twice.
TRAININGS = 5
TRANSACTIONS_MAX = 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lives")


@pytest.mark.guarantee(
    "any process that plans, trains, judges, publishes or forgets dies before any statement or "
    "durable write",
    "nothing; nothing is ever visible in part, and the same command continues; read again: as "
    "for the trainer",
)
def test_killed_at_thirty_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--seed", str(seed), "--count", str(POINTS))
    assert len(tried.faults) == POINTS
    assert tried.wrong == {}, f"seed {seed}"
    assert tried.transactions <= TRANSACTIONS_MAX * TRAININGS


@pytest.mark.guarantee(
    "the power fails at any write of a window's life",
    "nothing; no row names bytes that were not synced, and the same command continues from the "
    "newest seal; read again: as for the trainer; `reread_rows` may leave out what was read "
    "since that seal",
)
def test_power_lost_at_fifteen_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--death", "cut", "--seed", str(seed), "--count", str(CUTS))
    assert len(tried.faults) == CUTS
    assert tried.wrong == {}, f"seed {seed}"


# It dies before its sixth operation, the rename, and leaves an image of that moment.
LIFE = """
import os, sqlite3, sys
from pathlib import Path
from support.whole_life.faults import Faults, die
from support.whole_life.watched_disk import WatchedDisk
home, image, known = map(Path, sys.argv[1:])
disk = WatchedDisk(home)
Faults({6: lambda: (disk.leave_image(image, known), die())}).install()
disk.install()
rows = sqlite3.connect(home / "forebay.db")
rows.execute("PRAGMA journal_mode=wal")
rows.execute("CREATE TABLE numbers (number)")
rows.execute("INSERT INTO numbers VALUES (1)")
rows.commit()
rows.execute("INSERT INTO numbers VALUES (2)")
(home / "new").mkdir()
for name in ("kept", "lost"):
    file = os.open(home / "new" / name, os.O_CREAT | os.O_WRONLY)
    os.write(file, b"of " + name.encode())
    if name == "kept":
        os.fsync(file)
(home / "new" / "again").hardlink_to(home / "new" / "kept")
(home / "new" / "kept").rename(home / "new" / "renamed")
"""


def test_an_image_is_what_a_kill_leaves(tmp_path: Path) -> None:
    home, image, known = (tmp_path / name for name in ("life/home", "image", "known"))
    home.mkdir(parents=True)
    (home / "old").write_bytes(b"synced long ago")
    died = subprocess.run([sys.executable, "-c", LIFE, home, image, known], cwd=TESTS, check=False)
    assert died.returncode == -9
    left = tree_at(home)
    assert left is not None
    del left["forebay.db-shm"]  # SQLite makes it anew when it is opened first
    assert tree_at(image) == left
    assert set(left["new"]) == {"kept", "again", "lost"}
    new = image / "new"
    assert (new / "kept").stat().st_ino == (new / "again").stat().st_ino
    home.rename(tmp_path / "killed")
    image.rename(home)
    disk = WatchedDisk(home, known)._synced
    assert disk.left(home / "old") == b"synced long ago"
    assert disk.files[(home / "new" / "kept").stat().st_ino] == b"of kept"
    assert (home / "new" / "lost").stat().st_ino not in disk.files
    assert disk.number(home / "new") is None
    with sqlite3.connect(home / "forebay.db") as rows:
        assert rows.execute("SELECT number FROM numbers").fetchall() == [(1,)]
