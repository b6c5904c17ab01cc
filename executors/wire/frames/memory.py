"""Memory that frames are received into: aligned to 64 bytes, and reused.

Fresh memory costs a page fault for every 4 KiB of every frame.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ALIGNMENT = 64
# Blocks are rounded up, so that the next, slightly larger frame fits into this one's.
_STEP = 1 << 20
# A larger block is returned to the system: few frames are that large.
_KEPT_BYTES_MAX = 64 << 20

Block = npt.NDArray[np.uint8]


class FrameMemory:
    """Blocks of memory, each handed out to one frame at a time.

    A block is returned automatically once no array, slice or tensor refers to it any more.
    """

    def __init__(self, kept: int) -> None:
        """Keep at most this many unused blocks."""
        # Appending and popping are atomic: a block may be returned in any thread at any moment.
        self._free: deque[Block] = deque(maxlen=kept)

    def take(self, size: int) -> pa.Buffer:
        """`size` writable bytes with arbitrary content.

        Raises:
            OSError: when there is not enough memory.
        """
        block = self._free_block(size)
        if block is None:
            # Separate pages: aligned, and allocated only when something is written to them.
            block = np.frombuffer(mmap.mmap(-1, -(-max(size, 1) // _STEP) * _STEP), np.uint8)
        part = block[:size]
        weakref.finalize(part, self._give_back, block).atexit = False
        return pa.py_buffer(part)

    def _free_block(self, size: int) -> Block | None:
        try:
            block = self._free.pop()
        except IndexError:
            return None
        return block if len(block) >= size else None  # one that is too small is dropped

    def _give_back(self, block: Block) -> None:
        if len(block) <= _KEPT_BYTES_MAX:
            self._free.append(block)
