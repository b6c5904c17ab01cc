"""The real supervisor, with toy roles."""

from __future__ import annotations

from dataclasses import replace

from forebay.executors.planes.local import LocalPlane
from forebay.executors.roles.table import ROLES
from forebay.executors.supervisor.supervisor import Supervisor, supervisor_arguments
from forebay.system.output.process_log import set_up_logging

if __name__ == "__main__":
    table = [replace(role, module=f"support.toy_roles.{role.name}") for role in ROLES]
    set_up_logging("supervisor")
    job_dir, lock = supervisor_arguments(None)
    plane = LocalPlane(job_dir)
    raise SystemExit(Supervisor(job_dir, plane, table, grace_seconds=0.5, lock=lock).run())
