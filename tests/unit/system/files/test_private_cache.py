"""A private cache: made once, made again if damaged, never read if others can write to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from forebay.errors import InfrastructureError
from forebay.system.files.private_cache import cache_folder, cached


def making(content: bytes = b"made") -> tuple[list[int], Callable[[], bytes]]:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return content

    return made, make


def test_it_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kernels"
    made, make = making()
    assert [cached(folder, "a", make, 5.0) for _ in range(3)] == [b"made"] * 3
    assert (len(made), folder.stat().st_mode & 0o777) == (1, 0o700)
    assert (folder / "a").stat().st_mode & 0o777 == 0o600


def test_several_that_miss_it_wait_for_the_one_that_makes_it(tmp_path: Path) -> None:
    made, make = making()
    start = threading.Barrier(4)

    def read(_: int) -> bytes:
        start.wait()
        return cached(tmp_path / "cache", "a", make, 5.0)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(read, range(4)))
    assert (found, len(made)) == ([b"made"] * 4, 1)


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 36])
def test_what_is_not_intact_is_made_again(tmp_path: Path, damage: bytes) -> None:
    made, make = making()
    folder = tmp_path / "cache"
    cached(folder, "a", make, 5.0)
    (folder / "a").write_bytes(damage)
    assert (cached(folder, "a", make, 5.0), len(made)) == (b"made", 2)


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
def test_a_folder_that_others_may_enter_is_not_read(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    _, make = making()
    cached(folder, "a", make, 5.0)
    folder.chmod(mode)
    with pytest.raises(InfrastructureError, match=f"{folder} belongs to .* remove it"):
        cached(folder, "a", make, 5.0)


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    _, make = making()
    with pytest.raises(InfrastructureError, match=f"{folder}: .* remove it"):
        cached(folder, "a", make, 5.0)
    other, real = tmp_path / "other", tmp_path / "real"
    cached(real, "a", making(b"theirs")[1], 5.0)
    cached(other, "b", make, 5.0)
    (other / "a").symlink_to(real / "a")
    assert cached(other, "a", make, 5.0) == b"made"


def test_a_few_versions_are_kept(tmp_path: Path) -> None:
    for number in range(30):
        cached(tmp_path / "cache", f"{number}.o", making(b"%d" % number)[1], 5.0)
    assert len(list((tmp_path / "cache").iterdir())) <= 17
    made, make = making()
    assert cached(tmp_path / "cache", "29.o", make, 5.0) == b"29"
    assert not made


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, Path("/c/forebay/kernels")),
        ({"HOME": "/h"}, Path("/h/.cache/forebay/kernels")),
        ({}, None),
    ],
)
def test_where_it_is(environ: dict[str, str], wanted: Path | None) -> None:
    assert cache_folder(environ, "kernels") == wanted
