"""What tasks pass on to those after them."""

from __future__ import annotations

from forebay.operators.runs.xcoms import SubmittedJob


def test_a_window_that_needs_no_job_has_none() -> None:
    left = SubmittedJob(window="2026-03-01", generation=3, asked_by="run#0", claim="run/task/0")
    assert (left.job_id, left.epoch) == ("", 0)
