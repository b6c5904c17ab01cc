"""Which data executors have registered: reported in files, again by every new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from forebay.executors.job.endpoints import executors_registered, forget_registered, mark_registered


def test_all_current_executors_count(tmp_path: Path) -> None:
    assert not executors_registered(tmp_path, 1)
    mark_registered(tmp_path, 0, "unix:data-0.1")
    assert executors_registered(tmp_path, 1)
    assert not executors_registered(tmp_path, 2)
    mark_registered(tmp_path, 1, "unix:data-1.2")
    assert executors_registered(tmp_path, 2)
    forget_registered(tmp_path, 0)
    forget_registered(tmp_path, 0)
    assert not executors_registered(tmp_path, 2)


def test_what_operators_import_is_light() -> None:
    code = (
        "import sys, forebay.executors.job.endpoints, forebay.executors.job.progress\n"
        "heavy = {'numpy', 'pyarrow', 'grpc', 'pandas', 'tensorflow'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
