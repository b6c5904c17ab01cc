"""PostgreSQL for root on a machine with other accounts: a scenario in a mount namespace.

Run as `python -m support.other_accounts FOLDER` below `unshare --mount`. /etc is a copy there, so
no account of this machine changes. Prints one line of JSON: what was found after each step.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import create_engine, text

from forebay.embedded import checks
from forebay.embedded.layout import Layout
from forebay.embedded.postgres.account import OWN, make_account
from forebay.embedded.postgres.place import database_place, prepare_place, remove_database
from forebay.home.paths import Home
from support.postgres_server import PostgresServer

NAMED, UNNAMED = "daemon", 54321
ACCOUNT_FILES = ("passwd", "shadow", "group", "gshadow")


class Story:
    def __init__(self, folder: Path) -> None:
        self.log = folder / "server.log"
        self.layout = Layout(Home(folder / "home"))
        self.layout.create()

    @property
    def data(self) -> Path:
        return database_place(self.layout).data

    def served(self, *, first: bool = False) -> dict[str, Any]:
        place = database_place(self.layout)
        assert place.account is not None
        server = PostgresServer(prepare_place(self.layout, place), place, self.log)
        if first:
            server.initialise()
        server.start()
        assert server.process is not None
        user = psutil.Process(server.process.pid).username()
        engine = create_engine(f"postgresql+psycopg2{place.url}")
        with engine.begin() as connection:
            if first:
                connection.execute(text("CREATE TABLE kept AS SELECT 7 AS number"))
            number = connection.execute(text("SELECT number FROM kept")).scalar_one()
        engine.dispose()
        server.stop()
        files = (place.data, *place.data.rglob("*"))
        owners = {pwd.getpwuid(path.lstat().st_uid).pw_name for path in files}
        return {"user": user, "number": number, "owners": list(owners)}

    def doctor(self) -> list[str]:
        found = {one.name: one for one in checks.essential_checks(self.layout)}["database"]
        return [found.state, found.found.partition(", run by ")[2], found.remedy]

    def give_to(self, user: int) -> None:
        """As root does who restores a backup from another machine."""
        subprocess.run(["chown", "-R", f"{user}:{user}", str(self.data)], check=True)


@contextmanager
def mounted(*words: str) -> Iterator[None]:
    subprocess.run(["mount", *words], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", words[-1]], check=True)


def without_postgres(folder: Path) -> Path:
    copy = folder / "etc"
    subprocess.run(["cp", "-a", "/etc", str(copy)], check=True)
    for path in (copy / name for name in ACCOUNT_FILES):
        lines = path.read_text().splitlines(keepends=True)
        kept = (line for line in lines if line.split(":")[0] not in {"postgres", OWN})
        path.write_text("".join(kept))
    return copy


def tell(folder: Path) -> dict[str, Any]:
    story, said = Story(folder), {}
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin")
    assert useradd is not None
    try:
        said["doctor before"] = story.doctor()
        with mounted("--bind", "-o", "ro", "/etc", "/etc"):
            said["read-only"] = make_account(story.data)
        with mounted("--bind", "/dev/null", os.path.realpath(useradd)):
            said["no useradd"] = make_account(story.data)
            said["doctor without"] = story.doctor()
            said["shared"] = story.served(first=True)
        said["made"] = make_account(story.data)
        said["own"] = story.served()
        said["again"] = make_account(story.data)
        said["doctor after"] = story.doctor()
        story.give_to(UNNAMED)
        said["restored"] = story.served()
        story.give_to(pwd.getpwnam(NAMED).pw_uid)
        said["named"] = story.served()
    finally:
        remove_database(database_place(story.layout))
    return said


if __name__ == "__main__":
    with mounted("--bind", str(without_postgres(Path(sys.argv[1]))), "/etc"):
        print(json.dumps(tell(Path(sys.argv[1]))))
