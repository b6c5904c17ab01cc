"""The log of a process: lines on stderr, and the stacks of its threads when it crashes."""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import time

from forebay.system.redaction import filter_output


def set_up_logging(name: str) -> None:
    """Log this process to stderr, with UTC time and the process's name in each line.

    Neither the log nor anything else that it writes shows secrets.

    A crash in C++ or SIGUSR1 also writes the stacks of all threads there.
    """
    filter_output()
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(f"%(asctime)sZ %(levelname)s {name} %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
