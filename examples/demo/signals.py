"""Ctrl-C, `kill` and a closed terminal: each ends the demo cleanly, at any time."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CTRL_C = b"\x03"


def end_in_good_order() -> None:
    """Make every signal that ends the demo raise KeyboardInterrupt, as Ctrl-C does."""
    for number in _ENDS:
        signal.signal(number, signal.default_int_handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore signals while everything is stopped, which takes a bounded time."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_ctrl_c() -> None:
    """Return on Ctrl-C, or on a signal that ends the demo.

    Ctrl-C is read as a key here, not received as a signal: `make` would receive the signal too, and
    report that the demo failed.
    """
    try:
        if sys.stdin.isatty():
            _wait_for_key()
        else:
            signal.pause()
    except KeyboardInterrupt:
        return


def _wait_for_key() -> None:
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ISIG | termios.ICANON | termios.ECHO)
    try:
        termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
        while True:
            select.select([terminal], [], [])
            typed = os.read(terminal, 64)
            if not typed or _CTRL_C in typed:
                return
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
