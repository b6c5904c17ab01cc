"""What strangers may send, with 100,000 faults: nothing kills its reader or takes much memory.

Each is read, or refused with a reason. Again, by its seed: `FOREBAY_HOSTILE_SEED=S`, and one alone:
`python -m support.hostile KIND --seed S --first NUMBER`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hostile.command import require_read

COUNTS = {
    "arrow": 30_000,
    "json": 60_000,
    "avro": 15_000,
    "protobuf": 15_000,
    "record_batch": 6_000,
    "segment": 2_500,
    "parquet": 1_500,
    "footer": 6_000,
}


@pytest.mark.guarantee(
    "any byte changes in a message, a record batch, a segment or a Parquet file",
    "it is read, or refused with a reason; the messages beside it are read",
)
@pytest.mark.parametrize("kind", COUNTS)
def test_faults_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    require_read(kind, COUNTS[kind], tmp_path, 250)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", COUNTS)
def test_ten_times_as_many(kind: str, tmp_path: Path) -> None:
    require_read(kind, 10 * COUNTS[kind], tmp_path, 3500)
