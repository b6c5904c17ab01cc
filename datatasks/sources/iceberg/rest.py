"""REST catalogs that are not waited for without end: pyiceberg itself sets no deadline."""

from __future__ import annotations

from functools import partial
from typing import Any

# To connect, and between two parts of an answer: metadata of a large table takes its time.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0


def bound_rest_catalogs() -> None:
    """Have pyiceberg open bounded ones, however it was told that a catalog is one of REST."""
    from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType

    AVAILABLE_CATALOGS[CatalogType.REST] = _bounded


def _bounded(name: str, properties: dict[str, Any]) -> Any:  # noqa: ANN401 - lazily imported
    """A catalog of pyiceberg with deadlines on each of its requests."""
    from pyiceberg.catalog.rest import RestCatalog

    class BoundedCatalog(RestCatalog):
        def _create_session(self) -> Any:  # noqa: ANN401 - of requests, which has no types
            session: Any = super()._create_session()
            # All of the session's methods come through here, whatever signs their requests.
            session.request = partial(session.request, timeout=(CONNECT_SECONDS, ANSWER_SECONDS))
            return session

    return BoundedCatalog(name, **properties)
