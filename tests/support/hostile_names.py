"""Values that a stranger would try as a name, and what a folder held before and after."""

from __future__ import annotations

import stat
from pathlib import Path

# No name of ours is one of these. What cannot be an argument of a process is in NOT_ARGUMENTS.
NO_NAMES = (
    "../x", "../../models/ads", "/etc", "/etc/passwd", "a/b", "a\\b", "..\\x", "C:\\x", "", ".",
    "..", "...", ".hidden", "~", "~root", "-rf", "--help", "*", "a*", "?", "[a]", "${HOME}",
    "$(id)", "`id`", "a;b", "a b", " a", "a\n", "\na", "a\r", "a\tb", "%2e%2e", "%2e%2e%2fx",
    "..%c0%af", "\N{CYRILLIC SMALL LETTER A}ds", "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}",
    "\N{FRACTION SLASH}etc", "\N{FULLWIDTH DIGIT TWO}026-03-01", "a\N{RIGHT-TO-LEFT OVERRIDE}b",
    "\x1b[2J", "a" * 64 + "/" + "b" * 4000, "x" * 4000, "\udcff",
)  # fmt: skip
# One of each sort, for what takes milliseconds each.
FEW = (
    "../x", "/etc", "a/b", "", "..", "-rf", "a\n", "%2e%2e", "\N{CYRILLIC SMALL LETTER A}ds",
    "x" * 4000, "\udcff",
)  # fmt: skip
NOT_ARGUMENTS = ("a\0b", "\0", "../x\0")


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISLNK(mode):
            content = bytes(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (mode, content)
    return found
