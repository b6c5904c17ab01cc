"""Arrow without pandas, in a separate process: this one may have imported it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = """
import sys
import forebay.executors.{module}
from forebay.executors.arrow_start import start_arrow
start_arrow()
import pyarrow as pa
array = pa.array([1, 2])
assert array.to_numpy().sum() == 3
assert "pandas" not in sys.modules
assert array.to_pandas().sum() == 3
assert "pandas" in sys.modules
start_arrow()
"""


# A source kind of others finds Arrow as it always is.
OTHERS = """
import sys
from forebay.executors import arrow_start

class Theirs:
    pass

arrow_start.kind_named = {"theirs": Theirs}.__getitem__
arrow_start.start_arrow(["theirs"])
assert "pandas" in sys.modules
"""


MODULES = ("data_executor", "driver", "trainer")


@pytest.mark.parametrize(
    "code",
    [*(LIGHT.format(module=module) for module in MODULES), OTHERS],
    ids=[*MODULES, "a source kind of others"],
)
def test_pandas_is_imported_when_asked_for_only(code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
