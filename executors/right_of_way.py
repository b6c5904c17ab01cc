"""Whoever follows a line's streams gives way to work on past windows, and goes on afterwards.

They stop at their newest checkpoint. If a window before the one that goes on was trained again, it
starts over from that window's model: its beginning is no longer the newest.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import InfrastructureError
from forebay.executors.job.stored_jobs import StoredJob, find_job
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import living_holder

# How long it is heeded after whoever asked is gone.
HEEDED_SECONDS = 60.0
_AGAIN_SECONDS = 5.0
# Ending a job: a trainer may be in the middle of a large checkpoint.
_GIVEN_SECONDS = 90.0
_POLL_SECONDS = 0.25
_LOG = logging.getLogger(__name__)


def following_job(chain: ModelChain) -> StoredJob | None:
    """The job that holds the line because it trains a window that goes on."""
    job = find_job(chain.home, living_holder(chain.home, chain.pipeline, chain.line))
    if job is None:
        return None
    wanted = {each.key: each.generation for each in job.windows}
    plans = Ledger(chain.home, chain.pipeline, chain.line).plans(wanted)
    return job if any(plan.is_open for plan in plans.values()) else None


@contextmanager
def right_of_way(chain: ModelChain, why: str, told: Callable[[str], None]) -> Iterator[None]:
    """Inside, nobody trains a window that goes on: the line is free for work on past windows.

    Nothing is asked where nobody follows.
    """
    job = following_job(chain)
    if job is None:
        yield
        return
    window = job.windows[-1].key
    told(
        f"window {window}, which goes on, gives way: afterwards it starts over from the newest "
        "model before it if that has changed, and continues from its newest checkpoint otherwise"
    )
    name, over = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}", threading.Event()

    def keep() -> None:
        while not over.wait(_AGAIN_SECONDS):
            try:
                chain.pause(name, why, HEEDED_SECONDS)
            except InfrastructureError as error:  # the next one is in time
                _LOG.warning("cannot ask for the right of way again: %s", error)

    chain.pause(name, why, HEEDED_SECONDS)
    keeping = threading.Thread(target=keep, name="right of way", daemon=True)
    keeping.start()
    try:
        _await_free(chain, job.job_id)
        yield
    finally:
        over.set()
        keeping.join()
        chain.resume(name)


def _await_free(chain: ModelChain, job_id: str) -> None:
    deadline = time.monotonic() + _GIVEN_SECONDS
    while living_holder(chain.home, chain.pipeline, chain.line) == job_id:
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"job {job_id} does not give way: nobody seems to follow it any more. End it "
                f"(`forebay cancel {chain.pipeline} --line {chain.line}`) and try again"
            )
        time.sleep(_POLL_SECONDS)
