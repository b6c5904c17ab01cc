"""Served rows as TensorFlow tensors, and as a dataset of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import tensorflow as tf

Dataset: TypeAlias = tf.data.Dataset
Tensors = dict[str, tf.Tensor | tf.RaggedTensor]
# Of one list feature: row_splits int64[N+1] and values.
Lists = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def tensors_of(arrays: Mapping[str, str | npt.NDArray[np.generic] | Lists]) -> Tensors:
    """Tensors by the same names; (row_splits, values) become a RaggedTensor."""
    return {name: _tensor_of(each) for name, each in arrays.items()}


def dataset_of(rows: Callable[[], Iterator[Tensors]], schema: pa.Schema) -> Dataset:
    """A dataset of minibatches. schema: that of the rows as served (`served_schema`)."""
    signature = {
        "feed": tf.TensorSpec([], tf.string),
        "source": tf.TensorSpec([None], tf.int32),
        **{field.name: _spec_of(field.type) for field in schema},
    }
    options = tf.data.Options()
    # By default TensorFlow would prefetch: rows would be taken that nobody has seen.
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = False
    made: Dataset = Dataset.from_generator(rows, output_signature=signature).with_options(options)
    return made


def _tensor_of(value: str | npt.NDArray[np.generic] | Lists) -> tf.Tensor | tf.RaggedTensor:
    if isinstance(value, tuple):
        splits, values = value
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)
    return tf.convert_to_tensor(value)


def _spec_of(kind: pa.DataType) -> tf.TypeSpec:
    if pa.types.is_fixed_size_list(kind):
        return tf.TensorSpec([None, kind.list_size], _type_of(kind.value_type))
    if pa.types.is_list(kind):
        return tf.RaggedTensorSpec([None, None], _type_of(kind.value_type), 1, tf.int64)
    return tf.TensorSpec([None], _type_of(kind))


def _type_of(kind: pa.DataType) -> tf.DType:
    return tf.as_dtype(kind.to_pandas_dtype())
