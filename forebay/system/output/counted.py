"""A number and its noun, for messages: 1 window, 2 windows."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
