"""The real supervisor, with toy roles."""

from __future__ import annotations

from forebay.executors.planes.local import LocalPlane
from forebay.executors.supervisor.supervisor import Supervisor, supervisor_arguments
from forebay.system.output.process_log import set_up_logging

if __name__ == "__main__":
    modules = dict.fromkeys(("driver", "data", "trainer"), "support.toy_roles.role")
    set_up_logging("supervisor")
    job_dir, lock = supervisor_arguments(None)
    plane = LocalPlane(adopts_orphans=True)
    raise SystemExit(Supervisor(job_dir, plane, modules, grace_seconds=0.5, lock=lock).run())
