"""The real supervisor, with toy roles."""

from __future__ import annotations

from dataclasses import replace

from forebay.executors.roles.table import ROLES, roles
from forebay.executors.supervisor.supervisor import Supervisor, supervisor_arguments
from forebay.system.output.process_log import set_up_logging

if __name__ == "__main__":
    toys = {role.name: replace(role, module="support.toy_roles.role") for role in ROLES}
    table = [toys.get(role.name, role) for role in roles()]
    set_up_logging("supervisor")
    job_dir, lock = supervisor_arguments(None)
    raise SystemExit(Supervisor(job_dir, table, grace_seconds=0.5, lock=lock).run())
