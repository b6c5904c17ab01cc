"""A role of another package: it serves until it is stopped."""

from __future__ import annotations

import time

from forebay.config.role_environment import Access
from forebay.executors.role import role_process
from forebay.executors.roles.table import Role
from forebay.system.liveness import waiting

CACHE = Role(name="cache", module="support.others_role", access=Access())

if __name__ == "__main__":
    with role_process(CACHE), waiting():
        print("serving", flush=True)
        time.sleep(300)
