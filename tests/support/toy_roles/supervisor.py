"""The real supervisor, with toy roles."""

from __future__ import annotations

import argparse
from pathlib import Path

from forebay.executors.planes.local import LocalPlane
from forebay.executors.supervisor.supervisor import Supervisor
from forebay.system.process_log import set_up_logging

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True)
    modules = {role: f"support.toy_roles.{role}" for role in ("driver", "data", "trainer")}
    set_up_logging("supervisor")
    job_dir: Path = parser.parse_args().job
    plane = LocalPlane(adopts_orphans=True)
    raise SystemExit(Supervisor(job_dir, plane, modules, grace_seconds=0.5).run())
