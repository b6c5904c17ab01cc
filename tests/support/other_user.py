"""What another user of the machine can reach, by the kernel's answer or by modes and owners.

Only root can be somebody else for a moment. Elsewhere the same question is asked of the modes: what
the kernel would look at, without access lists.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_NOBODY = 65534
_TRIES = """
import json, os, socket, sys

def connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)

def bind(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)

acts = {
    "open": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "write": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "enter": os.chdir,
    "connect": connect,
    "bind": bind,
}
os.setgroups([])
os.setresgid(*[int(sys.argv[1])] * 3)
os.setresuid(*[int(sys.argv[1])] * 3)
done = []
for path in json.load(sys.stdin):
    for name, act in acts.items():
        try:
            act(path)
        except OSError as error:
            continue
        done.append(f"{name} {path}")
print(json.dumps(done))
"""


def reached_by_another_user(root: Path, paths: Sequence[Path]) -> list[str]:
    """What another user did with these paths: `open`, `write`, `enter`, `connect` or `bind`.

    `root` is above all of them, and everybody may enter it.
    """
    assert all(path.is_relative_to(root) for path in paths)
    expected = [act for path in paths for act in _allowed(root, path)]
    if os.geteuid() == 0:
        assert _tried(paths) == expected, "the kernel and the modes agree"
    return expected


def _tried(paths: Sequence[Path]) -> list[str]:
    sockets = [path for path in paths if path.is_socket() or not path.exists()]
    assert all(len(str(path)) < 108 for path in sockets), "or its length refuses it"
    done = subprocess.run(
        [sys.executable, "-c", _TRIES, str(_NOBODY)],
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def _allowed(root: Path, path: Path) -> list[str]:
    above = [each for each in path.parents if each.is_relative_to(root)]
    if not all(_others(each) & stat.S_IXOTH for each in above):
        return []
    if not path.exists():
        return [f"bind {path}"] if _others(path.parent) & stat.S_IWOTH else []
    reads, writes, enters = (_others(path) & bit for bit in (4, 2, 1))
    if path.is_socket():
        return [f"connect {path}"] if writes else []
    acts = {"open": reads, "write": writes and path.is_file(), "enter": enters and path.is_dir()}
    return [f"{act} {path}" for act, may in acts.items() if may]


def _others(path: Path) -> int:
    return path.stat().st_mode & stat.S_IRWXO
