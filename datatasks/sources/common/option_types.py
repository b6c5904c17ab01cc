"""Types of option values that several kinds have."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = bool | int | float | str
