"""Links of processes on one host."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.executors.job.folder import JobFolder
from forebay.executors.link.local import LocalLink


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe"])
def test_a_driver_that_is_not_known_may_be_so_later(tmp_path: Path, content: bytes | None) -> None:
    """Whoever calls it tries again; any other error would end the thread that beats."""
    if content is not None:
        endpoint = JobFolder(tmp_path).driver_endpoint
        endpoint.parent.mkdir()
        endpoint.write_bytes(content)
    with pytest.raises(OSError, match=r"driver\.json"):
        LocalLink(tmp_path).driver()
