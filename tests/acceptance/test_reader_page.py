"""docs/reader.md: each example is executed as written, beside a project that it reads."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import Project, ads_pipeline, ads_project

PAGE = Path("docs/reader.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ROWS = 2_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(
        tmp_path_factory.mktemp("reader"), rows=ROWS, pipeline=ads_pipeline("towers")
    )


@pytest.fixture
def example(stored: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    monkeypatch.chdir(stored.root)

    def execute(text: str) -> dict[str, Any]:
        (found,) = [each for each in EXAMPLES if text in each]
        names: dict[str, Any] = {"__name__": "example"}
        exec(compile(found, f"docs/reader.md: {text}", "exec"), names)
        return names

    return execute


def test_the_first_example(example: Callable[[str], dict[str, Any]]) -> None:
    assert example("count += len(minibatch")["count"] == 2 * ROWS


def test_arrow_to_parquet(example: Callable[[str], dict[str, Any]], stored: Project) -> None:
    example("ParquetWriter")
    table = pq.read_table(stored.root / "rows.parquet")
    assert table.num_rows == 2 * ROWS
    assert set(table.column("feed").to_pylist()) == {"batch", "stream"}
    in_table = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    # Of Arrow's columns the page names all but those of lists, whose names are the features'.
    served = [name for name in table.schema.names if not name.startswith("feature.")]
    assert set(served) <= set(in_table)


def test_keras(example: Callable[[str], dict[str, Any]]) -> None:
    # Keras says so of every dataset whose length it cannot know.
    with pytest.warns(UserWarning, match="ran out of data"):
        model = example("tf.keras")["model"]
    assert int(model.optimizer.iterations.numpy()) >= 2 * ROWS // 1024


def test_pytorch(example: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """With PyTorch where it is installed; what the example asks of it is little."""
    if find_spec("torch") is None:
        for name, module in stand_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    names = example("IterableDataset")
    assert names["count"] == 2 * ROWS
    assert names["dense"].shape[1:] == (1,)
    assert names["ids"].shape[1:] == (2,)
    again = sum(len(label) for _, _, label in names["loader"])
    assert again == 2 * ROWS, "each iteration is one pass"


def test_a_checkpoint_continues(example: Callable[[str], dict[str, Any]], stored: Project) -> None:
    total = example("CHECKPOINT")["total"]
    segments = [pa.ipc.open_file(each).read_all() for each in stored.log.glob("*/*.arrow")]
    tables = [pq.read_table(stored.files), *segments]
    assert total == sum(int(each.column("clicked").to_numpy().sum()) for each in tables)
    kept, _ = json.loads((stored.root / "checkpoint.json").read_text())
    assert kept == total
    assert example("CHECKPOINT")["total"] == total, "every row was counted before"


def stand_in() -> dict[str, ModuleType]:
    """What the example imports of PyTorch, with NumPy's arrays as tensors."""

    class IterableDataset:
        pass

    class DataLoader:
        def __init__(self, dataset: Iterable[Any], batch_size: None) -> None:
            assert batch_size is None
            self._dataset = dataset

        def __iter__(self) -> Iterator[Any]:
            return iter(self._dataset)

    torch, utils, data = (ModuleType(name) for name in ("torch", "torch.utils", "torch.utils.data"))
    vars(torch).update(Tensor=np.ndarray, tensor=np.array, utils=utils)
    vars(data).update(
        IterableDataset=IterableDataset, DataLoader=DataLoader, get_worker_info=lambda: None
    )
    vars(utils).update(data=data)
    return {each.__name__: each for each in (torch, utils, data)}
