"""What the two ways of training the windows have in common: through Airflow and without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Json = dict[str, Any]


class Way(Protocol):
    """Trains the demo's windows. `stop` is called in every case, also after an interrupt."""

    @property
    def stays(self) -> bool:
        """Whether it is up until somebody ends it."""

    @property
    def ends_airflow(self) -> bool:
        """Whether `stop` ends an Airflow."""

    def train(self, between: Callable[[], None]) -> Json:
        """Train the windows that are not trained yet; print and return the summary of all.

        Args:
            between: called many times a second while windows are trained.

        Raises:
            ForebayError: when a window could not be trained.
        """

    def tell(self) -> None:
        """Say what there is to look at."""

    def linger(self) -> None:
        """Stay for as long as somebody looks; called where `stays` is true."""

    def stop(self) -> None:
        """Take everything down that was started."""
