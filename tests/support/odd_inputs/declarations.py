"""Odd declarations: the project that has every key, with one value or one piece of text changed."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import yaml

from support.declarations import Value, declarations, dump
from support.odd_inputs.cases import Case

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, 1e308,
    float("inf"), float("nan"), 5e-324, "", " ", "0", "1", "-1", "1.5", "1e3", "true", "null",
    "nan", "1h", "0s", "-1h", "25h", "1w", "999999999999d", "0x10", "1_000", "auto", "AUTO", "a b",
    "a.b", "a/b", "../x", "/", "//", "\\", "'", '"', "${X}", "${X:-1}", "${", "$X", "${X:-${Y}}",
    "{}", "{date}", "*", "[", "[!", "(?", "**/**", "x" * 10_000, "😀", "日本", "\u0000", "\u202e",
    "\ufeff", "e\u0301", "class", "UTC", "Europe/Berlin", "Mars/Phobos", "2026-03-01", "2026-02-30",
    "0001-01-01", "9999-12-31", "10000-01-01", "2026-03-01T25:00", "2026-03-01T10:00:00+99:00",
    "1900-01-01", [], {}, [None], [[]], {"": 1}, {"a": {"b": {"c": 1}}}, ["a", "a"], {"a": 1},
    ["x"] * 300, "localhost", "localhost:0", "localhost:99999", "http://localhost:9092",
    "a:9092,b:9092", ",", "s3://", "s3:///x", "file:///x", "foo://x", "s3://b//x", "~", "-",
    "--help", "@", "a@b", "%s", "%",
)  # fmt: skip
_TEXTS = (
    b"\xff", b"\xef\xbb\xbf", b"\t", b"\x00", b"\x07", b"&a *a", b"!!python/none", b"- ", b"? ",
    b"|", b"<<: *x\n", b"{", b"[", b"]", b": ", b"#", b"---\n", b"...\n", b"%YAML 2.0\n", b"'",
    b'"', b"\r", b"1:30", b"0o17", b"\xe2\x80\xa8", b"@x", b"`", b"= ", b"~", b"!<x>",
)  # fmt: skip


def declaration_case(chance: random.Random, root: Path) -> Case:
    files = declarations()
    name = chance.choice(sorted(files))
    case = Case(root, "declaration", "", "odd", objects=[Path(name).stem])
    case.config.mkdir(parents=True)
    kept = {name} | {each for each in files if each.startswith("sources/")}
    contents = {each: dump(value).encode() for each, value in files.items() if each in kept}
    if chance.random() < 0.8:
        value = copy.deepcopy(files[name])
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            case.what += f"{name}: {_change(chance, value)}; "
        contents[name] = yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode()
    else:
        text = contents[name]
        at, piece = chance.randrange(len(text) + 1), chance.choice(_TEXTS)
        cut = at + chance.choice((0, 0, 1, 5))
        contents[name] = text[:at] + piece + text[cut:]
        case.what = f"{name}: {piece!r} at byte {at}"
    for file, content in contents.items():
        path = case.config / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return case


def _change(chance: random.Random, value: Value) -> str:
    """Another value, no value, or another key, at any place; what was done."""
    places = list(_places(value))
    holder, key, path = chance.choice(places)
    way = chance.random()
    odd = copy.deepcopy(chance.choice(_VALUES))
    if way < 0.8 or isinstance(holder, list):
        holder[key] = odd
        return f"{path} = {odd!r:.60}"
    if way < 0.9:
        del holder[key]
        return f"no {path}"
    text = odd if isinstance(odd, str) else "odd"
    holder[text] = holder.pop(key)
    return f"{path} is called {text!r:.60}"


def _places(value: Any, path: str = "") -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in list(items):
        place = f"{path}.{key}" if path else str(key)
        yield value, key, place
        if isinstance(each, (dict, list)):
            yield from _places(each, place)
