"""What planning read of storage and would otherwise read again: files of this host that may go.

Each process that plans is new, so memory alone would help none. A file is replaced whole; of two
writers at once one wins, and the other's is read again from storage.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.home.paths import Home
from forebay.home.privacy import make_home
from forebay.system.files.durable import new_file

KEPT_SECONDS = 90 * 86_400.0
_DIGEST_BYTES = hashlib.sha256().digest_size
_LOG = logging.getLogger(__name__)


class PlanCache:
    """Bytes by name, in the cache of one home."""

    def __init__(self, home: Home | None = None, *, only_look: bool = False) -> None:
        """Without a home nothing is kept. only_look: nothing is written."""
        self._home = home
        self._only_look = only_look

    def read(self, name: str) -> bytes | None:
        """What was kept under a name; None where there is nothing, or it is damaged."""
        if self._home is None:
            return None
        path = self._home.cache / name
        try:
            stored = path.read_bytes()
            if not self._only_look:
                os.utime(path)  # it is in use
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("%s: %s: what it holds is read from storage again", path, error)
            return None
        content = stored[_DIGEST_BYTES:]
        if hashlib.sha256(content).digest() != stored[:_DIGEST_BYTES]:
            _LOG.warning("%s is damaged: what it held is read from storage again", path)
            return None
        return content

    def keep(self, name: str, content: bytes | memoryview) -> None:
        """Replace what is kept under a name. Where the disk refuses it, the log says so."""
        if self._home is None or self._only_look:
            return
        path = self._home.cache / name
        try:
            make_home(self._home)  # footers may be kept before the first row of its database
            with new_file(path) as stream:
                stream.write(hashlib.sha256(content).digest())
                stream.write(content)
            self._drop_unused(path.parent)
        except (OSError, InfrastructureError) as error:
            _LOG.warning("%s is not kept, and will be read from storage again: %s", name, error)

    @staticmethod
    def _drop_unused(folder: Path) -> None:
        """Remove what nobody has read for months: its source is gone, or declared otherwise."""
        oldest = time.time() - KEPT_SECONDS
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # another process did it
                if path.stat().st_mtime < oldest:
                    path.unlink()
