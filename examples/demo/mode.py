"""What the two ways of training the windows, with and without Airflow, have in common."""

from __future__ import annotations

import sys
from typing import Any

Json = dict[str, Any]


def say(text: str) -> None:
    """Print a line of the demo immediately, even between the lines of the run."""
    sys.stdout.write(f"\r\x1b[2K{text}\n" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()
