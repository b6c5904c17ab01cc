"""One Iceberg table: its catalog, its snapshot, its files as the Parquet loop opens them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import make_url

from forebay.config.yaml.spelling import nearest
from forebay.datatasks.sources.common.files.listing import read_failure
from forebay.datatasks.sources.common.files.versions import version_text
from forebay.errors import ConfigError, DataError, ForebayError, InfrastructureError
from forebay.system.extras import require_extra
from forebay.system.output.redaction import redacted

# To connect, and between two parts of an answer: metadata of a large table takes its time.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0


def _bounded(name: str, properties: dict[str, Any]) -> Any:  # noqa: ANN401 - lazily imported
    from pyiceberg.catalog.rest import RestCatalog

    class BoundedCatalog(RestCatalog):
        def _create_session(self) -> Any:  # noqa: ANN401 - of requests, which has no types
            session: Any = super()._create_session()
            # All of the session's methods come through here, whatever signs their requests.
            session.request = partial(session.request, timeout=(CONNECT_SECONDS, ANSWER_SECONDS))
            return session

    return BoundedCatalog(name, **properties)


_SQLITE = "sqlite:///"
_FILE = "file://"
_DEFAULT_NAME = "default"
_WHOLE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")  # Hadoop's file systems write file:/x
_NO_FILE = "{} is not a file: put the table's file back"


class NoTableError(Exception):
    """The catalog or the table does not exist; the message says what does."""


def one_spelling(place: str) -> str:
    """Equal for texts that name one file: file:/x, file:///x and /x, or s3a://b/x and s3://b/x."""
    local = re.sub(r"^file:(//[^/]*)?(?=/)", "", place)
    if local.startswith("/"):
        return posixpath.normpath("/" + local.lstrip("/"))
    return re.sub(r"^s3[an]://", "s3://", place)  # in buckets `..` is a name like others


def resolved(properties: Mapping[str, Any], root: Path) -> dict[str, str]:
    """Catalog properties as pyiceberg takes them: texts, relative local paths from `root`."""
    found = {}
    for name, value in properties.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text.startswith(_SQLITE) and not text.removeprefix(_SQLITE).startswith("/"):
            url = make_url(text)  # whether %20 is a space in it, only SQLAlchemy knows
            url = url.set(database=os.fspath((root / (url.database or "")).absolute()))
            text = url.render_as_string(hide_password=False)
        if text.startswith(_FILE) and not text.removeprefix(_FILE).startswith("/"):
            text = f"{_FILE}{(root / text.removeprefix(_FILE)).absolute()}"
        if name == "warehouse" and "://" not in text:
            text = f"{_FILE}{(root / text).absolute()}"
        found[name] = text
    return found


@contextmanager
def reading_metadata(place: str) -> Iterator[None]:
    """Name the place in whatever pyiceberg raises when it reads metadata, which may hold anything.

    Raises:
        DataError: when something else than metadata is there.
        InfrastructureError: when the storage does not answer.
    """
    try:
        yield
    except ForebayError:
        raise
    except OSError as error:
        raise InfrastructureError(f"{place}: {error}") from error
    except Exception as error:
        raise DataError(
            f"{place} cannot be planned: {str(error) or type(error).__name__}"
        ) from error


class IcebergTable:
    """Opens the catalog at the first use. `calls` counts what the storage was asked."""

    def __init__(self, properties: Mapping[str, Any], identifier: str, root: Path) -> None:
        """`name` among the properties is the catalog's own name (default: `default`)."""
        self.identifier = identifier
        self.calls = 0
        self._properties = resolved(properties, root)
        self._catalog: Any = None
        self._table: Any = None

    def load(self, *, fresh: bool = True) -> Any:  # noqa: ANN401 - pyiceberg's Table, lazily imported
        """The table at its newest snapshot, or as it was loaded before when not `fresh`.

        Raises:
            MissingExtraError: when the extra `iceberg` is not installed.
            NoTableError: when the catalog's database or the table is not there.
            InfrastructureError: when the catalog does not answer.
        """
        if self._table is not None and not fresh:
            return self._table
        require_extra("iceberg")
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        catalog = self._opened_catalog()
        self.calls += 1
        try:
            self._table = catalog.load_table(self.identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NoTableError(self._missing(catalog)) from None
        except Exception as error:
            raise InfrastructureError(
                f"table {self.identifier} cannot be loaded: {error}"
            ) from error
        return self._table

    def close(self) -> None:
        catalog, self._catalog, self._table = self._catalog, None, None
        if catalog is not None:
            catalog.close()

    def relative(self, path: str) -> str:
        """A data file's path relative to the table's location; the whole path when elsewhere.

        Also the whole path where the rest of it alone would be taken for one.
        """
        prefix = self.load(fresh=False).location().rstrip("/") + "/"
        rest = path.removeprefix(prefix)
        return path if _WHOLE.match(rest) else rest

    def full(self, relative: str) -> str:
        """The inverse of `relative`: a path as it is written, for pyiceberg to make sense of."""
        if _WHOLE.match(relative):
            return relative
        return f"{self.load(fresh=False).location().rstrip('/')}/{relative}"

    @contextmanager
    def opened(self, relative: str) -> Iterator[Any]:
        """Through the table's own file system. DataError for a pipe or a folder."""
        self.calls += 1
        place = self.full(relative)
        local = Path(one_spelling(place))
        if local.is_absolute() and local.exists() and not local.is_file():
            raise DataError(_NO_FILE.format(place))  # to open a pipe would wait for ever
        with self.load(fresh=False).io.new_input(place).open() as handle:
            yield (
                pa.PythonFile(handle, mode="r") if not isinstance(handle, pa.NativeFile) else handle
            )

    def version(self, relative: str) -> str:
        """The version of one file now: its size, which is all that manifests say.

        Raises:
            DataError: when it is gone, or has a name that cannot be opened.
            InfrastructureError: when the storage does not answer.
        """
        place = self.full(relative)
        self.calls += 1
        try:
            return version_text(len(self.load(fresh=False).io.new_input(place)))
        except TypeError as error:  # it has no size
            raise DataError(_NO_FILE.format(place)) from error
        except OSError as error:
            raise read_failure(error, place) or InfrastructureError(f"{place}: {error}") from error
        except pa.ArrowInvalid as error:  # of a name that its client does not take
            raise DataError(
                f"{place} cannot be opened: {error} (options.catalog may name another client: "
                "py-io-impl: pyiceberg.io.fsspec.FsspecFileIO)"
            ) from error

    def exists(self, relative: str) -> bool:
        self.calls += 1
        return bool(self.load(fresh=False).io.new_input(self.full(relative)).exists())

    def _opened_catalog(self) -> Any:  # noqa: ANN401
        if self._catalog is not None:
            return self._catalog
        from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType, load_catalog

        # However pyiceberg was told that a catalog is one of REST, it opens a bounded one.
        AVAILABLE_CATALOGS[CatalogType.REST] = _bounded
        uri = self._properties.get("uri", "")
        file = make_url(uri).database if uri.startswith(_SQLITE) else None
        if file and not Path(file).is_file():
            raise NoTableError(f"there is no catalog file {file}")
        settings = {name: value for name, value in self._properties.items() if name != "name"}
        # A reader creates nothing: a wrong address must not become an empty catalog.
        settings.setdefault("init_catalog_tables", "false")
        try:
            self._catalog = load_catalog(self._properties.get("name", _DEFAULT_NAME), **settings)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"options.catalog cannot be used: {error}") from error
        except Exception as error:
            text = redacted(f"the catalog at {uri} does not answer: {error}")
            raise InfrastructureError(text) from error
        return self._catalog

    def _missing(self, catalog: Any) -> str:  # noqa: ANN401
        try:
            names = [
                ".".join(name)
                for namespace in catalog.list_namespaces()
                for name in catalog.list_tables(namespace)
            ]
        except Exception as error:  # noqa: BLE001 - the listing only serves the hint
            return f"there is no table {self.identifier!r} (its catalog cannot be listed: {error})"
        guess = nearest(self.identifier, names)
        catalog_name = self._properties.get("name", _DEFAULT_NAME)
        known = f"catalog {catalog_name!r} has no tables (options.catalog.name)"
        if names:
            known = f"the catalog has {', '.join(names[:8])}"
        way_out = f"did you mean {guess!r}?" if guess else known
        return f"there is no table {self.identifier!r}: {way_out}"
