"""The clock of windows is the host's, unless it is set."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from forebay.errors import ConfigError
from forebay.system.clock import CLOCK_NAME, utc_now

SECOND = timedelta(seconds=1)


def test_it_is_the_host_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CLOCK_NAME, raising=False)
    before = datetime.now(UTC)
    assert before <= utc_now() <= datetime.now(UTC)


def test_it_begins_where_it_is_set_and_runs_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_020.0)
    monkeypatch.setenv(CLOCK_NAME, "2026-03-01T01:00:00+01:00@1000x60")
    begun = datetime(2026, 3, 1, tzinfo=UTC)
    assert utc_now() == begun + 20 * 60 * SECOND
    monkeypatch.setenv(CLOCK_NAME, "2026-03-01T00:00:00+00:00@1019.5x0.5")
    assert utc_now() == begun + SECOND / 4


@pytest.mark.parametrize("text", ["now", "2026-03-01", "2026-03-01@5", "today@5x1", "2026@x1"])
def test_what_is_no_clock_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(CLOCK_NAME, text)
    with pytest.raises(ConfigError, match=r"FOREBAY_CLOCK is .*; unset it"):
        utc_now()
