"""Writes what commands print in a terminal of 80 columns into the pages: `make captures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from support.captures import captures, write_blocks


def main() -> None:
    """Run the commands, write the blocks."""
    with tempfile.TemporaryDirectory(prefix="forebay-captures-") as folder:
        write_blocks(captures(Path(folder)))


if __name__ == "__main__":
    main()
