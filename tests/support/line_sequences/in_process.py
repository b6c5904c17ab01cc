"""Commands in this process: jobs, their trainers, planning, footers of Parquet files."""

from __future__ import annotations

from forebay.cli import main
from support.sequences.children import work_here

if __name__ == "__main__":
    work_here()
    main()
