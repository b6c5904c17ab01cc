from __future__ import annotations

from support.toy_roles.role import main

if __name__ == "__main__":
    main("data")
