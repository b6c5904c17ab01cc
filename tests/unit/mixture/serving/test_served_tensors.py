"""Served rows as tensors, and the signature of a dataset of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.served_rows import SCHEMA, batch_of_lists
from support.strangers import until

from forebay.mixture.features.served import arrays_by_column
from forebay.mixture.tensorflow_start import start_tensorflow


@pytest.fixture(autouse=True, scope="module")
def _started() -> None:
    start_tensorflow(1)


def arrays(rows: int, seed: int = 1) -> dict[str, object]:
    batch = batch_of_lists(rows, seed)
    return {"feed": "stream", "source": np.zeros(rows, np.int32), **arrays_by_column(batch)}


def test_tensors_and_datasets_have_the_values_of_the_arrays() -> None:
    from forebay.mixture.serving.served_tensors import dataset_of, tensors_of

    given = arrays(9)
    found = tensors_of(given)  # type: ignore[arg-type]
    assert (set(found), found["feed"].numpy()) == (set(given), b"stream")
    for name, value in given.items():
        if isinstance(value, tuple):
            assert found[name].row_splits.numpy().tolist() == value[0].tolist()
            assert found[name].values.numpy().tolist() == value[1].tolist()
        elif isinstance(value, np.ndarray):
            assert found[name].numpy().tolist() == value.tolist()
            assert found[name].dtype.as_numpy_dtype == value.dtype
    rows = [arrays(4, 1), arrays(2, 2)]
    made = dataset_of(lambda: (tensors_of(each) for each in rows), SCHEMA)  # type: ignore[arg-type]
    spec = made.element_spec
    assert (spec["dense"].shape.as_list(), spec["feature.tags"].ragged_rank) == ([None, 3], 1)
    first, second = made
    assert (len(first["row_id"]), len(second["row_id"])) == (4, 2)
    words = batch_of_lists(2, 2).column("feature.words").to_pylist()
    assert second["feature.words"].to_list() == words


@pytest.mark.parametrize("mapped", [False, True])
def test_a_dataset_takes_no_minibatch_that_nobody_asked_for(mapped: bool) -> None:
    from forebay.mixture.serving.served_tensors import dataset_of, tensors_of

    taken = []

    def rows() -> Iterator[Any]:
        for number in range(10):
            taken.append(number)
            yield tensors_of(arrays(4, number))  # type: ignore[arg-type]

    made = dataset_of(rows, SCHEMA)
    if mapped:
        made = made.map(lambda each: (each["ids"], each["label"]))
    asked = iter(made)
    for count in (1, 2, 3):
        next(asked)
        assert not until(lambda count=count: len(taken) > count, 0.3)  # type: ignore[misc]
        assert len(taken) == count
