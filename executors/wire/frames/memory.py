"""Memory that frames are received into: it begins at a multiple of 64 bytes, and is used again.

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
# Blocks grow in steps, so that the next frame, a little larger, fits into this one's.
_STEP = 1 << 20
# A larger block goes back to the system: few frames are as large.
_KEPT_BYTES_MAX = 64 << 20

Block = npt.NDArray[np.uint8]


class FrameMemory:
    """Blocks of memory. Each is handed out to one frame at a time.

    A block comes back by itself once nothing refers to it any more: no array, no slice, no tensor.
    """

    def __init__(self, kept: int) -> None:
        """Keep that many blocks at most that nobody uses."""
        # Appending and popping are atomic: a block may come back in any thread at any moment.
        self._free: deque[Block] = deque(maxlen=kept)

    def take(self, size: int) -> pa.Buffer:
        """`size` writable bytes whose content is anything.

        Raises:
            OSError: when there is not so much memory.
        """
        block = self._free_block(size)
        if block is None:
            # Pages of their own: aligned, and counted only once something is written there.
            block = np.frombuffer(mmap.mmap(-1, -(-max(size, 1) // _STEP) * _STEP), np.uint8)
        part = block[:size]
        weakref.finalize(part, self._give_back, block).atexit = False
        return pa.py_buffer(part)

    def _free_block(self, size: int) -> Block | None:
        try:
            block = self._free.pop()
        except IndexError:
            return None
        return block if len(block) >= size else None  # one that is too small is of no use now

    def _give_back(self, block: Block) -> None:
        if len(block) <= _KEPT_BYTES_MAX:
            self._free.append(block)
