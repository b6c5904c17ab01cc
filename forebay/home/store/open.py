"""Opens the store of a home, once in each process.

A store belongs to one home, since each home removes what its own rows do not name. A store inside a
home's own folder belongs to that home. Any other store records its owner the first time that a home
stores something there.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from forebay.errors import ConfigError
from forebay.home.database.identity import read_marker
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.privacy import require_own
from forebay.home.store.base import STORE_NAME, Store
from forebay.system.extras import require_extra


def store_of(home: Home) -> Store:
    """The store of a home, according to FOREBAY_STORE; the same object for the same value.

    Raises:
        ConfigError: when FOREBAY_STORE is neither a folder nor a supported URL, or is another
            user's folder.
        MissingExtraError: when what it needs is not installed.
    """
    return _opened(str(home.root.absolute()), _address(home))


def own_store(home: Home) -> Store:
    """The store of a home, for callers that store something or remove what no row names.

    Raises:
        ConfigError: when it belongs to another home, or when there is no home yet.
        InfrastructureError: when the store cannot be reached.
    """
    if address := _address(home):
        _require_claimed(str(home.root.absolute()), address)
    return store_of(home)


def _address(home: Home) -> str:
    given = "" if home.alone else os.environ.get(STORE_NAME, "")
    return os.fspath(Path(given).expanduser()) if given.startswith("~/") else given


@lru_cache(maxsize=16)
def _opened(root: str, address: str) -> Store:
    home = Home(Path(root))
    if address.startswith("s3:"):
        require_extra("s3")
        from forebay.home.store.object_store import ObjectStore

        return ObjectStore(address, home.cache / "store")
    from forebay.home.store.folder_store import FolderStore

    if address and not address.startswith("/"):
        # Not quoted: it may hold a password.
        raise ConfigError(
            f"{STORE_NAME}: expected the absolute path of a folder, or an address such as "
            "s3://BUCKET/FOLDER; if it is not set, the store is a folder below FOREBAY_HOME"
        )
    if address:
        require_own(Path(address), STORE_NAME)
    return FolderStore(Path(address) if address else home.store)


@lru_cache(maxsize=16)
def _require_claimed(root: str, address: str) -> None:  # noqa: ARG001 - asked once for each address
    home = Home(Path(root))
    marker, store = read_marker(home), store_of(home)
    if marker is None:
        raise ConfigError(
            f"{root} is not a home yet, and {STORE_NAME} names a store that may be another home's: "
            f"correct {ENVIRONMENT_NAME}, or plan something first"
        )
    if store.owner() is None:
        store.claim(marker.id)
    # Read again: of two homes that claim it at once, one finds the other's id.
    owner = store.owner()
    if owner != marker.id:
        raise ConfigError(
            f"{STORE_NAME} names the store of home {owner}, and {root} is home {marker.id}: each "
            f"home removes what it does not name. Correct {STORE_NAME} or {ENVIRONMENT_NAME}; if "
            f"that home is gone for good, remove {store.owner_url()}"
        )
