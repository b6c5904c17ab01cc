"""Prints how much there is to read: `make counts`."""

from __future__ import annotations

from support.budgets import counts

for name, count in counts().items():
    print(f"{name}: {count:,}")
