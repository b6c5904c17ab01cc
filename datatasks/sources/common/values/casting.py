"""Stored columns as declared Arrow types. A value that does not fit makes its row a bad row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.config.yaml.spelling import nearest
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES, Finding, is_held
from forebay.datatasks.sources.common.values.times import Times, as_utc, no_instants, times_of
from forebay.system.output.counted import counted

# A cast names one value and stops. So it is asked about what is left only: values that are not told
# here, of which there are few. What is told here does fail: tests hold both against casts.

Mask = npt.NDArray[np.bool_]

_INT64 = np.iinfo(np.int64)
_US_OF = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_DAY_US = 86_400_000_000
_DAY_MS = 86_400_000


def odd_values(array: pa.Array, declared: ColumnType) -> Mask:
    """One truth for each value of a column: whether it surely does not fit. Nulls do."""
    if declared in LIST_ITEMS and not pat.is_null(array.type):
        values = pc.list_flatten(array)
        if pat.is_dictionary(values.type):
            values = values.dictionary_decode()
        odd = np.zeros(len(array), np.bool_)
        parents = np.asarray(pc.list_parent_indices(array))
        odd[parents[odd_values(values, LIST_ITEMS[declared])]] = True
        return odd
    if declared is ColumnType.INT:
        return _no_integers(array)
    if declared is ColumnType.TIMESTAMP:
        return _no_instants(array)
    return np.zeros(len(array), np.bool_)


def _no_integers(array: pa.Array) -> Mask:
    if pat.is_uint64(array.type):
        above: Mask = _numbers(array) > _INT64.max
        return above
    if pat.is_floating(array.type):
        values = _numbers(array)
        fits: Mask = (values == np.trunc(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
        return ~fits
    return np.zeros(len(array), np.bool_)


def _no_instants(array: pa.Array) -> Mask:
    if pat.is_timestamp(array.type):
        return _beyond(_numbers(array.cast(pa.int64())), _US_OF[array.type.unit])
    if pat.is_date32(array.type):
        return _beyond(_numbers(array.cast(pa.int32())).astype(np.int64), _DAY_US)
    if pat.is_date64(array.type):
        return _beyond(_numbers(array.cast(pa.int64())) // _DAY_MS, _DAY_US)
    if pat.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return no_instants(array)


def _beyond(values: npt.NDArray[np.int64], factor: int) -> Mask:
    """Whether values times a factor are no int64."""
    return (values > _INT64.max // factor) | (values < -(_INT64.max // factor))


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Values, with 0 for nulls."""
    if pat.is_float16(array.type):
        array = array.cast(pa.float32())
    return np.asarray(pc.fill_null(array, pa.scalar(0, array.type)))


_REASON_MAX = 160
_SHOWN = 8
_EXPLAINED_MAX = 1000
_SCALE_MAX = 76  # digits of the widest decimal
_Cast = Callable[[pa.Array], pa.Array]


@dataclass
class Fitted:
    """Columns in declared types, and the rows (index to reason) that did not fit."""

    batch: pa.RecordBatch
    bad: dict[int, str] = field(default_factory=dict)


def fit(
    batch: pa.RecordBatch,
    columns: Sequence[str],
    declared: Mapping[str, ColumnType],
    *,
    as_held: bool = False,
) -> Fitted:
    """Cast `columns` of a stored batch. Bad rows hold nulls in the columns that did not fit.

    The batch has every column, of a type that `castable` allows (see `column_problem`). as_held:
    leave alone what a chunk may hold as it is stored (`is_held`).
    """
    fitted = batch.select(list(columns)).replace_schema_metadata()
    bad: dict[int, str] = {}
    for place, (name, stored) in enumerate(zip(columns, fitted.schema.types, strict=True)):
        if not (as_held and is_held(stored, declared[name])):
            array, reasons = _fit_array(fitted.column(place), name, declared[name])
            fitted = fitted.set_column(place, name, array)
            bad = reasons | bad
    return Fitted(fitted, bad)


def event_times(batch: pa.RecordBatch, event_time: str) -> Times:
    """Microseconds of each row; UNKNOWN where there is none."""
    fitted = fit(batch, [event_time], {event_time: ColumnType.TIMESTAMP})
    return times_of(fitted.batch.column(0))


def fit_values(
    values: Mapping[str, Sequence[Any]],
    declared: Mapping[str, ColumnType],
    read: Mapping[ColumnType, Callable[[Any], Any]],
) -> Fitted:
    """Columns of Python's values, for storage without types. read: how it writes others."""
    bad: dict[int, str] = {}
    arrays = [_fitted_array(name, each, declared[name], read, bad) for name, each in values.items()]
    return Fitted(pa.RecordBatch.from_arrays(arrays, names=list(values)), bad)


def _fitted_array(
    name: str,
    values: Sequence[Any],
    declared: ColumnType,
    read: Mapping[ColumnType, Callable[[Any], Any]],
    bad: dict[int, str],
) -> pa.Array:
    target, reader = ARROW_TYPES[declared], read.get(declared)
    found: list[Any] = []
    for row, value in enumerate(values):
        try:
            known = value if reader is None or value is None else reader(value)
            made = pa.scalar(known, target).as_py()
            if made != known and declared in {ColumnType.INT, ColumnType.LIST_INT}:
                raise ValueError(f"{known} would be {made}")
            found.append(made)
        except (ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException) as error:
            found.append(None)
            bad.setdefault(row, f"column {name!r} as {declared.value}: {error}"[:_REASON_MAX])
    return pa.array(found, target)


def castable(stored: pa.DataType, declared: ColumnType) -> bool:
    """Whether values of a stored type can become the declared one without guessing."""
    if pat.is_dictionary(stored):
        return castable(stored.value_type, declared)
    if pat.is_null(stored):
        return True
    if declared in LIST_ITEMS:
        return _is_list(stored) and castable(stored.value_type, LIST_ITEMS[declared])
    return any(test(stored) for test in _ALLOWED[declared])


def unlike_declared(
    schema: pa.Schema, declared: Mapping[str, ColumnType]
) -> Mapping[str, ColumnType]:
    """Those of the declared columns that are not stored as a chunk may hold them (`is_held`).

    They may have a `column_problem`. Of thousands of columns few are looked at one by one.
    """
    try:
        stored = dict(zip(schema.names, schema.types, strict=True))
    except UnicodeDecodeError:
        return declared
    if len(stored) < len(schema):  # some names stand there twice
        return declared
    return {
        name: kind
        for name, kind in declared.items()
        if name not in stored or not is_held(stored[name], kind)
    }


def column_problem(schema: pa.Schema, name: str, declared: ColumnType) -> str:
    """What is wrong with a declared column in a stored schema; an empty text when nothing is."""
    index = schema.get_field_index(name)
    if index >= 0:  # no list of all names for each of many columns
        stored = schema.field(index).type
        if castable(stored, declared):
            return ""
        return f"column {name!r} is stored as {stored}, which cannot be read as {declared.value}"
    try:
        names = schema.names
    except UnicodeDecodeError as error:
        return f"the name of a column is not UTF-8: {error}"
    if name not in names:
        guess = nearest(name, names)
        way_out = f"did you mean {guess!r}?" if guess else f"it has {_some(names)}"
        return f"there is no column {name!r}: {way_out}"
    return f"column {name!r} appears more than once"


def column_findings(
    schema: pa.Schema,
    declared: Mapping[str, ColumnType],
    place: str,
    problem_of: Callable[[pa.Schema, str, ColumnType], str] = column_problem,
) -> Iterator[Finding]:
    """What a stored schema has against the declared columns; `place` is where it was read."""
    for name, kind in declared.items():
        problem = problem_of(schema, name, kind)
        if problem:
            code = "column-type" if "stored as" in problem else "column-missing"
            yield Finding(("columns", name), code, f"{place}: {problem}")


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "no columns at all"


def _fit_array(array: pa.Array, name: str, declared: ColumnType) -> tuple[pa.Array, dict[int, str]]:
    target = ARROW_TYPES[declared]
    if array.type.equals(target):
        return array, {}
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    cast = _cast_to(array.type, declared)
    try:
        return cast(array), {}
    except pa.ArrowInvalid:
        reasons = _failing(array, declared, cast)
    mask = np.zeros(len(array), np.bool_)
    mask[list(reasons)] = True
    kept = _without(array, mask)
    said = {row: f"column {name!r} as {declared.value}: {why}" for row, why in reasons.items()}
    return cast(kept), said


def cast_or_null(
    array: pa.Array, cast: _Cast, odd: Callable[[pa.Array], Mask], said: str
) -> tuple[pa.Array, dict[int, str]]:
    """Values as `cast` makes them, null where it makes none, and why there it does not.

    odd: tells at once values that surely do not fit, of which `said` is the reason.
    """
    try:
        return cast(array), {}
    except pa.ArrowInvalid:
        known = odd(array)
    reasons = dict.fromkeys(np.flatnonzero(known).tolist(), said)
    reasons |= _halved(_without(array, known), cast)
    mask = np.zeros(len(array), np.bool_)
    mask[list(reasons)] = True
    return cast(_without(array, mask)), reasons


def _failing(array: pa.Array, declared: ColumnType, cast: _Cast) -> dict[int, str]:
    """Rows whose value cannot be cast. Arrow says why for the first ones, which are enough."""
    odd = odd_values(array, declared)
    others = _halved(_without(array, odd), cast)
    rows = [*np.flatnonzero(odd).tolist(), *others]
    alike = f"the value does not fit, like {counted(len(rows) - 1, 'other')} of its batch"
    found = dict.fromkeys(sorted(rows), alike) | others
    for row in itertools.islice(found, _EXPLAINED_MAX):
        found |= _halved(array.slice(row, 1), cast, row)
    return found


def _without(array: pa.Array, mask: npt.NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array) if mask.any() else array


def _halved(array: pa.Array, cast: _Cast, first: int = 0) -> dict[int, str]:
    """The same by halving: few casts where few rows are bad."""
    try:
        cast(array)
    except pa.ArrowInvalid as error:
        if len(array) == 1:
            return {first: str(error)[:_REASON_MAX]}
    else:
        return {}
    half = len(array) // 2
    found = _halved(array.slice(0, half), cast, first)
    found.update(_halved(array.slice(half), cast, first + half))
    return found


def _cast_to(stored: pa.DataType, declared: ColumnType) -> _Cast:
    target = ARROW_TYPES[declared]
    if declared is ColumnType.TIMESTAMP:
        return _to_instants
    if declared is ColumnType.FLOAT and not _is_text(stored):
        return lambda array: array.cast(target, safe=False)
    if declared in LIST_ITEMS and _is_list(stored):
        return lambda array: _cast_list(array, declared)
    return lambda array: array.cast(target)


def _to_instants(array: pa.Array) -> pa.Array:
    target = ARROW_TYPES[ColumnType.TIMESTAMP]
    if pat.is_null(array.type):
        return array.cast(target)
    if _is_text(array.type):
        return as_utc(array)
    if pat.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    if array.type.unit == "ns":  # rounding to microseconds is not a loss that anybody trains on
        return array.cast(pa.timestamp("us", tz=array.type.tz), safe=False).cast(target)
    return array.cast(target)


def _cast_list(array: pa.Array, declared: ColumnType) -> pa.Array:
    """Lists of any layout; values through the scalar rules, so that dictionaries decode too."""
    values = pc.list_flatten(array)
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    inner = LIST_ITEMS[declared]
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        _cast_to(values.type, inner)(values),
        type=ARROW_TYPES[declared],
        mask=array.is_null(),
    )


def _is_text(stored: pa.DataType) -> bool:
    return bool(pat.is_string(stored) or pat.is_large_string(stored) or pat.is_string_view(stored))


def _is_decimal(stored: pa.DataType) -> bool:
    """Of a scale that a number can have: Arrow takes any, and crashes when it casts those."""
    return bool(pat.is_decimal(stored)) and abs(stored.scale) <= _SCALE_MAX


def _is_list(stored: pa.DataType) -> bool:
    return bool(
        pat.is_list(stored)
        or pat.is_large_list(stored)
        or pat.is_fixed_size_list(stored)
        or pat.is_list_view(stored)
        or pat.is_large_list_view(stored)
    )


_ALLOWED: Mapping[ColumnType, tuple[Callable[[pa.DataType], bool], ...]] = {
    ColumnType.STRING: (_is_text,),
    ColumnType.INT: (pat.is_integer, pat.is_floating),  # pandas writes ints with nulls as floats
    ColumnType.FLOAT: (pat.is_floating, pat.is_integer, _is_decimal),
    ColumnType.BOOL: (pat.is_boolean,),
    ColumnType.TIMESTAMP: (pat.is_timestamp, pat.is_date, _is_text),
}
