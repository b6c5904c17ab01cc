"""Kind `memory` as declarations see it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.datatasks.sources.common.contract.option_types import Text


class MemoryKind(SourceKind):
    """Tables of this process."""

    name: ClassVar[str] = "memory"
    bounded: ClassVar[bool] = True
    source: ClassVar[str] = "forebay.datatasks.sources.memory.source:MemorySource"

    class Options(Spec):
        """Rows in this process, for tests."""

        table: Text = Field(description="Key in forebay.datatasks.sources.memory.source.MEMORY")
