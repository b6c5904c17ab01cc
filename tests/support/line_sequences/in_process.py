"""Everything in this process: jobs, their trainers, planning, footers of Parquet files."""

from __future__ import annotations

import json
import logging
from typing import Any

from forebay.datatasks.sources.parquet import footer_process, footer_reader
from support.sequences.children import work_here


def run_all_here() -> None:
    logging.disable(logging.CRITICAL)
    work_here()
    footer_reader.ReadingChild = _FooterChild  # type: ignore[misc,assignment]


class _FooterChild:
    """Stands where footers are parsed by a child, which a footer may kill."""

    def __init__(self, *_: object) -> None:
        """No process is there."""

    def answer(self, call: bytes) -> bytes:
        head, _, content = call.partition(b"\n")
        asked: dict[str, Any] = json.loads(head)
        return json.dumps(footer_process.answer(asked, content)).encode()

    def close(self) -> None:
        """No process was there."""


if __name__ == "__main__":
    from forebay.cli import main

    run_all_here()
    main()
