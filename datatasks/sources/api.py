"""What a source kind of another package is made of (docs/write-a-source.md).

The names in `__all__` are all that such a package needs; the modules behind them may change.
"""

from __future__ import annotations

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import (
    ARROW_TYPES,
    Commits,
    Describes,
    Description,
    Finding,
    PartitionLag,
    Readiness,
    Scan,
    Source,
    SourcePlanner,
    SourceReader,
    ended,
)
from forebay.datatasks.sources.common.contract.borders import Border, Borders
from forebay.datatasks.sources.common.files.bundles import RowRanges, to_tasks
from forebay.datatasks.sources.common.rows.chunks import Stored, empty_chunk, joined, to_chunk
from forebay.datatasks.sources.common.rows.numbered import (
    NumberedSource,
    Slice,
    numbered_ranges,
    slices,
)
from forebay.datatasks.sources.common.values.casting import Fitted, column_problem, fit_values
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import Spans, hours_within, times_of
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, ReadUnit, RowRange
from forebay.errors import DataError, InfrastructureError
from forebay.system.instants import from_us, to_us

__all__ = [
    "ARROW_TYPES",
    "Border",
    "Borders",
    "Chunk",
    "ColumnType",
    "Commits",
    "DataError",
    "DataTask",
    "DeadRow",
    "Describes",
    "Description",
    "Finding",
    "Fitted",
    "InfrastructureError",
    "Interval",
    "NumberedSource",
    "PartitionLag",
    "Position",
    "ReadUnit",
    "Readiness",
    "RowRange",
    "RowRanges",
    "Scan",
    "Slice",
    "Source",
    "SourceKind",
    "SourcePlanner",
    "SourceReader",
    "SourceSpec",
    "Spans",
    "Spec",
    "Stored",
    "column_problem",
    "empty_chunk",
    "ended",
    "fit_values",
    "from_us",
    "hours_within",
    "joined",
    "numbered_ranges",
    "row_ids",
    "slices",
    "times_of",
    "to_chunk",
    "to_tasks",
    "to_us",
]
