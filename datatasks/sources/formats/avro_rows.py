"""Format `avro`: each message is one record, as its schema's file says; no container file."""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.types as pat

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.formats.written_rows import RowReader, SchemaError, WrittenDecoder

# fastavro reads recursively without a bound, and as many items as a message claims, so that a
# schema that would let a message end the process, or read on without end, is refused as a whole:
# one with types inside of themselves, and one with items that may take no bytes
# (avro.apache.org/docs/1.12.0/specification).

Node = Any  # a name, a union as a list, or a mapping
_INTS, _FLOATS = frozenset({"int", "long"}), frozenset({"float", "double"})
_TEXTS, _RECORDS = frozenset({"string", "enum"}), frozenset({"record", "error"})
_NO_SCHEMA = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_UNITS = {
    f"{local}timestamp-{name}": unit
    for local in ("", "local-")
    for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
}
# Objects of Python: a value, a record or map with its first field, and each further one.
_VALUE_BYTES, _MAPPING_BYTES, _FIELD_BYTES = 64.0, 280.0, 120.0
_TEXT_BYTES_EACH = 5.0  # should one character of it be no ASCII
_NESTING_MAX = 60
_ITEMS = {"array": "items", "map": "values"}


class Cost(NamedTuple):
    """What a value of a type takes.

    stored: the fewest bytes of the message of which the reader sees whether they are there.
    fixed, each: the most bytes of memory: for the value, and for each of its bytes.
    """

    stored: int
    fixed: float
    each: float


class AvroReader(RowReader):
    """Names in its schema are resolved, and logical types taken off."""

    def __init__(self, content: bytes, declared: Mapping[str, ColumnType]) -> None:
        """SchemaError for what is no schema of a record, or one that is not read."""
        try:
            stored = json.loads(content)
            parsed = fastavro.parse_schema(stored)
            self.plain = fastavro.parse_schema(_without_logical_types(stored))  # to read by
        except (fastavro.schema.SchemaParseException, *_NO_SCHEMA) as error:
            raise SchemaError(f"it is not an Avro schema: {error}") from None
        if not isinstance(parsed, dict) or parsed.get("type") not in _RECORDS:
            raise SchemaError("a row is a record, and this type is not")
        super().__init__({each["name"]: each["type"] for each in parsed["fields"]}, declared)
        self._named: dict[str, Node] = {}
        self._name_all(parsed)
        cost = self._cost(parsed, ())
        self.fixed_bytes, self.bytes_each = cost.fixed, cost.each

    def _name_all(self, node: Node) -> None:
        """Remember named types; fastavro has made their names full."""
        if isinstance(node, list):
            for each in node:
                self._name_all(each)
        elif isinstance(node, dict):
            if "name" in node:
                self._named[str(node["name"])] = node
            for field in node.get("fields", ()):
                self._name_all(field["type"])
            for key in ("items", "values", "type"):
                if isinstance(node.get(key), list | dict):
                    self._name_all(node[key])

    def kind(self, node: Node) -> tuple[str, Node]:
        """The name of a type, and what declares it."""
        while isinstance(node, dict) and isinstance(node["type"], dict):
            node = node["type"]
        name = (
            "union" if isinstance(node, list) else node["type"] if isinstance(node, dict) else node
        )
        if isinstance(name, list):
            return "union", name
        if isinstance(name, str) and name in self._named and not isinstance(node, dict):
            return self.kind(self._named[name])
        return str(name), node

    def _cost(self, node: Node, above: tuple[int, ...]) -> Cost:
        name, node = self.kind(node)
        if id(node) in above and isinstance(node, dict | list):
            raise SchemaError(
                f"the type {self.shown(node)} contains itself, which is not supported"
            )
        if len(above) > _NESTING_MAX:
            raise SchemaError(f"types are nested more than {_NESTING_MAX} deep")
        above = (*above, id(node))
        if name in _SCALARS:
            return _SCALARS[name]
        if name == "fixed":
            return Cost(0, _VALUE_BYTES + int(node["size"]), 1.0)
        if name == "union":
            costs = [self._cost(each, above) for each in node]
            return Cost(1, max(c.fixed for c in costs), max(c.each for c in costs))
        if name in _RECORDS:
            costs = [self._cost(field["type"], above) for field in node["fields"]]
            fixed = _MAPPING_BYTES + sum(_FIELD_BYTES + cost.fixed for cost in costs)
            each = max((cost.each for cost in costs), default=0.0)
            return Cost(sum(cost.stored for cost in costs), fixed, each)
        if name in _ITEMS:
            return self._items(name, self._cost(node[_ITEMS[name]], above))
        raise SchemaError(f"there is no type {name!r}")

    @staticmethod
    def _items(name: str, item: Cost) -> Cost:
        stored = item.stored + (name == "map")
        if not stored:
            raise SchemaError(f"items of an {name} take no bytes: there may be any number of them")
        fixed = item.fixed + (_FIELD_BYTES if name == "map" else _VALUE_BYTES / 4)
        each = max(item.each, _TEXT_BYTES_EACH if name == "map" else 0.0)
        return Cost(1, _MAPPING_BYTES, fixed / stored + each)

    def stored_type(self, field: Node, declared: ColumnType) -> pa.DataType | None:
        name, node = self.kind(field)
        branches = node if name == "union" else [node]
        kinds = [self.kind(branch) for branch in branches]
        used = [(name, branch) for name, branch in kinds if name != "null"]
        if not used:
            return pa.null()
        if declared in LIST_ITEMS:
            if len(used) > 1 or used[0][0] != "array":
                return None
            item = self.stored_type(used[0][1]["items"], LIST_ITEMS[declared])
            return None if item is None else pa.list_(item)
        names = {name for name, _ in used}
        if declared is ColumnType.TIMESTAMP:
            units = {_unit(branch) for _, branch in used}
            if names <= _INTS and len(units) == 1:
                return pa.timestamp(units.pop(), tz="UTC")
            return pa.string() if names <= _TEXTS else None
        return next((stored for allowed, stored in _STORED[declared] if names <= allowed), None)

    def shown(self, field: Node) -> str:
        name, node = self.kind(field)
        if name == "union":
            return " | ".join(self.shown(each) for each in node)
        if name in _ITEMS:
            return f"{name}<{self.shown(node[_ITEMS[name]])}>"
        logical = node.get("logicalType") if isinstance(node, dict) else None
        return str(logical or name)

    def read(self, payload: bytes) -> Any:  # noqa: ANN401
        # One byte more, since not every reader of a value sees that the message ends in it.
        file = BytesIO(payload + b"\0")
        try:
            found = fastavro.schemaless_reader(file, self.plain, None)
        except _FAULTS as error:
            raise ValueError(f"not a record of its schema: {_said(error)}") from None
        left = len(payload) - file.tell()
        if left:
            more = f"{left:,} bytes are left after it" if left > 0 else "it ends too early"
            raise ValueError(f"not a record of its schema: {more}")
        return found

    def arrays(self, rows: Sequence[Any]) -> list[pa.Array]:
        return [_array(list(map(itemgetter(name), rows)), stored) for name, stored in self._columns]


def _unit(node: Node) -> str:
    """Of instants; numbers that say nothing of themselves are milliseconds, as in JSON."""
    logical = node.get("logicalType", "") if isinstance(node, dict) else ""
    return _UNITS.get(logical, "ms")


def _without_logical_types(node: Node) -> Node:
    """A schema by which numbers stay numbers: fastavro would make objects of instants."""
    if isinstance(node, list):
        return [_without_logical_types(each) for each in node]
    if isinstance(node, dict):
        return {
            key: _without_logical_types(value) if key in _WITH_TYPES else value
            for key, value in node.items()
            if key != "logicalType"
        }
    return node


_WITH_TYPES = frozenset({"type", "items", "values", "fields"})
_SCALARS: Mapping[str, Cost] = {
    "null": Cost(0, 0.0, 0.0),
    "boolean": Cost(1, 0.0, 0.0),
    **dict.fromkeys(("int", "long"), Cost(1, _VALUE_BYTES, 0.0)),
    "float": Cost(4, _VALUE_BYTES, 0.0),
    "double": Cost(8, _VALUE_BYTES, 0.0),
    "bytes": Cost(1, _VALUE_BYTES, 1.0),
    "string": Cost(1, 2 * _VALUE_BYTES, _TEXT_BYTES_EACH),
    "enum": Cost(1, 0.0, 0.0),
}
_STORED: Mapping[ColumnType, tuple[tuple[frozenset[str], pa.DataType], ...]] = {
    ColumnType.STRING: ((_TEXTS, pa.string()),),
    ColumnType.INT: ((_INTS, pa.int64()),),
    ColumnType.FLOAT: ((_INTS, pa.int64()), (_FLOATS | _INTS, pa.float64())),
    ColumnType.BOOL: ((frozenset({"boolean"}), pa.bool_()),),
}


_FAULTS = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    attrgetter("ReadError")(importlib.import_module("fastavro._read")),  # it has no public name
    TypeError,
    UnicodeDecodeError,
    struct.error,
)


class AvroDecoder(WrittenDecoder):
    def reader(self, content: bytes) -> RowReader:
        return AvroReader(content, self.declared)


def _array(values: list[Any], stored: pa.DataType) -> pa.Array:
    if pat.is_list(stored) and pat.is_floating(stored.value_type):
        values = [None if value is None else _floats(value) for value in values]
    elif pat.is_floating(stored):
        values = _floats(values)
    return pa.array(values, stored)


def _floats(values: list[Any]) -> list[float | None]:
    """Integers of a union too, which Arrow takes only where they are exact."""
    return [None if value is None else float(value) for value in values]


def _said(error: BaseException) -> str:
    # fastavro names the object that it reads from, with its address in memory.
    said = str(error).partition(" from <")[0]
    return said or ("it ends too early" if isinstance(error, EOFError) else repr(error))
