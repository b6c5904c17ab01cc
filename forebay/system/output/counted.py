"""A number and its noun, for messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 window, 2 windows."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
