"""VariableFile: the variables of a learner as one TensorFlow checkpoint, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from forebay.errors import ConfigError

_KEY = "variables/{}/.ATTRIBUTES/VARIABLE_VALUE"


class VariableFile:
    """Reads and writes one learner's variables.

    Some are resettable: they count and watch, and the model is the same without them. A file need
    not hold those, and may hold some that are no longer wanted. A file of an earlier version may
    hold one value for all sources where each now has its own: every source then continues from
    that.
    """

    def __init__(
        self, variables: Mapping[str, tf.Variable], resettable: Mapping[str, tf.Variable]
    ) -> None:
        """`variables` are all of them; a resettable one starts as zero."""
        self._variables = dict(variables)
        self._resettable = dict(resettable)
        self._all = tf.train.Checkpoint(variables=self._variables)

    def write(self, path: Path) -> None:
        """Write all of them."""
        self._all.write(str(path))

    def read(self, path: Path) -> None:
        """Restore what was written; resettable variables that the file does not hold become zero.

        Raises:
            ConfigError: when it lacks one of the others.
        """
        file = tf.train.load_checkpoint(str(path))
        held = file.get_variable_to_shape_map()
        there = {name: each for name, each in self._variables.items() if _KEY.format(name) in held}
        lacking = self._variables.keys() - there.keys() - self._resettable.keys()
        if lacking:
            raise ConfigError(f"{path}: the checkpoint has no {', '.join(sorted(lacking))}")
        for name, variable in self._resettable.items():
            key = _KEY.format(name)
            if name not in there:
                variable.assign(tf.zeros_like(variable))
            elif not held[key] and variable.shape.rank:
                variable.assign(tf.fill(variable.shape, file.get_tensor(key)))
                del there[name]
        status = tf.train.Checkpoint(variables=there).read(str(path))
        status.assert_existing_objects_matched().expect_partial()
