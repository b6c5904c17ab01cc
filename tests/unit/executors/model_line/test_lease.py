"""A line's lock file before its holder has written its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import request

from forebay.errors import LineBusyError
from forebay.executors.model_line.lease import LEASE_NAME, line_holder, take_lease
from forebay.home.database.format import record_format
from forebay.home.paths import Home


def test_a_holder_that_has_not_written_its_name_yet(tmp_path: Path) -> None:
    home = Home(tmp_path)
    record_format(home)
    lease = take_lease(request(home, "job-1", {}))
    (home.line("ads", "main") / LEASE_NAME).write_text("")
    assert line_holder(home, "ads", "main") == "another job"
    with pytest.raises(LineBusyError, match=r"^another job trains"):
        take_lease(request(home, "job-2", {}))
    lease.release()
