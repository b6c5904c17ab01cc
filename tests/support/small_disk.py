"""Full disks: a tiny file system, or a limit on the size of a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SYS_ADMIN = 21
_LIMITED = (
    "import os, resource, sys; limit = int(sys.argv[1]); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


def may_mount() -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    (effective,) = [line.split()[1] for line in lines if line.startswith("CapEff:")]
    return bool(int(effective, 16) >> _SYS_ADMIN & 1)


@contextmanager
def tiny_file_system(folder: Path, size_bytes: int) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size_bytes}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def grow(folder: Path, size_bytes: int) -> None:
    options = f"remount,size={size_bytes}"
    subprocess.run(["mount", "-o", options, str(folder)], check=True)


def fill(folder: Path) -> None:
    with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def limited(command: list[str], file_bytes: int) -> list[str]:
    """The same command where the kernel lets no file of it or its children grow further."""
    return [sys.executable, "-c", _LIMITED, str(file_bytes), *command]
