"""The most memory that a process has had since a given moment, from the kernel."""

from __future__ import annotations

from pathlib import Path

_KB = 1024
_FORGET_THE_PEAK = "5"


class MemoryPeak:
    """How far a process grows above what it has now."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        (self._folder / "clear_refs").write_text(_FORGET_THE_PEAK)
        self._before = self._bytes("VmRSS")

    @property
    def growth(self) -> int:
        return self._bytes("VmHWM") - self._before

    def _bytes(self, name: str) -> int:
        for line in (self._folder / "status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value.split()[0]) * _KB
        raise AssertionError(f"{self._folder} has ended")
