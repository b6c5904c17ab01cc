"""What the two ways of training the windows, with and without Airflow, have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

Json = dict[str, Any]


class Way(Protocol):
    """Trains the demo's windows. `stop` is always called, even after an interrupt."""

    @property
    def stays(self) -> bool:
        """Whether it stays running until the user ends it."""

    @property
    def ends_airflow(self) -> bool:
        """Whether `stop` stops Airflow."""

    def train(self, between: Callable[[], None]) -> Json:
        """Train the windows that are not trained yet; print and return the summary of all.

        Args:
            between: called many times a second while windows are trained.

        Raises:
            ForebayError: when a window could not be trained.
        """

    def tell(self) -> None:
        """Print what there is to look at."""

    def linger(self) -> None:
        """Wait until the user ends it; called if `stays` is true."""

    def stop(self) -> None:
        """Stop everything that was started."""


def say(text: str) -> None:
    """Print a line of the demo immediately, even between the lines of the run."""
    sys.stdout.write(f"\r\x1b[2K{text}\n" if sys.stdout.isatty() else f"{text}\n")
    sys.stdout.flush()
