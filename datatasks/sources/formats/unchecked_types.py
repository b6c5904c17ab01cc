"""Stored types whose values Arrow does not check, so that nobody may compute with a stranger's.

Arrow 26 takes the null slots of views unseen, and a cast adds up the lengths in them: a negative
one makes it write past what it allocated.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.values.casting import column_problem

_UNCHECKED = (
    pat.is_string_view,
    pat.is_binary_view,
    pat.is_list_view,
    pat.is_large_list_view,
    pat.is_run_end_encoded,
)


def unchecked_type(stored: pa.DataType) -> pa.DataType | None:
    """The first such type in a type, at any depth."""
    if any(test(stored) for test in _UNCHECKED):
        return stored
    if pat.is_dictionary(stored):
        return unchecked_type(stored.value_type)
    if isinstance(stored, pa.BaseExtensionType):
        return unchecked_type(stored.storage_type)
    parts = (stored.field(index).type for index in range(stored.num_fields))
    return next(filter(None, map(unchecked_type, parts)), None)


def unchecked_problem(schema: pa.Schema, name: str) -> str:
    """Why a column is not read, whatever it is declared as; empty where it is."""
    stored = schema.field(name).type
    found = unchecked_type(stored)
    if found is None:
        return ""
    return (
        f"column {name!r} is stored as {stored}, and {found} is not read, since Arrow does not "
        "check such values: write string, large_string or list"
    )


def stored_problem(schema: pa.Schema, name: str, declared: ColumnType) -> str:
    """What is wrong with a declared column that a stranger stored; empty when nothing is."""
    return column_problem(schema, name, declared) or unchecked_problem(schema, name)
