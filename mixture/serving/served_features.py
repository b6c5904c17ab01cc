"""features.json: stored beside a SavedModel, so that rows can be scored by column names."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Self

from forebay.config.specs.sources import ColumnType
from forebay.system.message import Message

FEATURES = "features.json"
SIGNATURE = "serving_default"
# TensorFlow makes parameters of a Python method of the inputs.
_NO_PARAMETERS = frozenset({*keyword.kwlist, "self"})


class ServedColumn(Message):
    """A raw column that the model reads, and the name of its input in the signature."""

    type: ColumnType
    input: str


class ServedFeatures(Message):
    """Everything that a caller of `serving_default` needs to know."""

    paradigm: str
    columns: dict[str, ServedColumn]
    outputs: list[str]

    @classmethod
    def of(cls, paradigm: str, types: Mapping[str, ColumnType], outputs: Iterable[str]) -> Self:
        """Give every column an input name that TensorFlow allows; its own name if possible."""
        columns: dict[str, ServedColumn] = {}
        taken: set[str] = set()
        for column, kind in types.items():
            name = plain = re.sub(r"[^A-Za-z0-9_]", "_", column)
            if not re.match(r"[A-Za-z]", plain) or plain in _NO_PARAMETERS:
                name = plain = f"column_{plain}"
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{plain}_{number}"
            taken.add(name.lower())
            columns[column] = ServedColumn(type=kind, input=name)
        return cls(paradigm=paradigm, columns=columns, outputs=list(outputs))
