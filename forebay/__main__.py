"""`python -m forebay` is `forebay`."""

from __future__ import annotations

from forebay.cli import main

if __name__ == "__main__":
    main()
