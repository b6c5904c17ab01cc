"""Lines that the demo itself prints."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print a line of the demo immediately, even between the lines of the run."""
    sys.stdout.write(f"\r\x1b[2K{text}\n" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()
