"""Opens the store of a home, once in each process."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from forebay.errors import ConfigError
from forebay.home.paths import Home
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
    address = "" if home.alone else os.environ.get(STORE_NAME, "")
    return _opened(str(home.root.absolute()), address)


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
    if not address:
        return FolderStore(home.store)
    require_own(Path(address), STORE_NAME)
    return FolderStore(Path(address))
