"""What a test expects to be there, at once or soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def there(found: Found | None) -> Found:
    """What was looked for: that nothing was found fails the test."""
    assert found is not None
    return found


def eventually(
    look: Callable[[], Found | None],
    seconds: float = 20,
    otherwise: Callable[[], object] = lambda: "it did not happen in time",
    pause: float = 0.01,
) -> Found:
    """What is found in time. otherwise: what there is to say in vain."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, otherwise()
        time.sleep(pause)
    return found


def until(condition: Callable[[], object], seconds: float = 10.0, pause: float = 0.02) -> bool:
    """Whether it happens in time."""
    deadline = time.monotonic() + seconds
    while not (happened := bool(condition())) and time.monotonic() < deadline:
        time.sleep(pause)
    return happened
