"""Lines that the demo itself says."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A line of the demo's own, at once, also between the lines of the run."""
    sys.stdout.write(f"\r\x1b[2K{text}\n" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()
