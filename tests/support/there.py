"""What a test expects to be there."""

from __future__ import annotations

from typing import TypeVar

Found = TypeVar("Found")


def there(found: Found | None) -> Found:
    """What was looked for: that nothing was found fails the test."""
    assert found is not None
    return found
