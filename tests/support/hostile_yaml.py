"""YAML that a stranger would write: each text with the place of its first problem."""

from __future__ import annotations

import random
from typing import NamedTuple


class Hostile(NamedTuple):
    """A file. line: of its first problem; None where any will do. code: of that problem."""

    name: str
    content: bytes
    line: int | None
    code: str


def _merge_keys() -> str:
    """Each mapping merges the one before twice: 2^60 pairs."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    return "\n".join(lines)


def _aliases() -> str:
    """Each list holds the one before ten times: 10^60 texts."""
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 60)]
    return "\n".join(lines)


_NUMBERS = {
    "octal": ("job: {roles: {data: {count: 010}}}", "is 8 in YAML"),
    "base 60": ("job: {roles: {data: {count: 1:30}}}", "is 90 in YAML"),
    "base 60 float": ("job: {roles: {data: {count: 1:30.5}}}", "is 90.5 in YAML"),
    "digits": ("job: {roles: {data: {count: " + "9" * 1_000_000 + "}}}", "too long"),
    "bits": ("job: {roles: {data: {count: 0x" + "f" * 50 + "}}}", "64 bits"),
    "negative": ("model: {seed: -9223372036854775809}", "64 bits"),
    "exponent": ("model: {seed: 1.0e+999999}", "finite number"),
    "infinity": ("model: {seed: .inf}", "finite number"),
    "not a number": ("model: {dense_learning_rate: .nan}", "finite number"),
    "exponent as text": ("model: {dense_learning_rate: 1e999999}", "finite number"),
    "calendar": ("dataset: {start: 9999-12-31T23:59:59-23:00}", "outside the calendar"),
    "calendar below": ("dataset: {start: 0001-01-01T00:00:00+23:00}", "outside the calendar"),
    "calendar quoted": ("dataset: {start: '9999-12-31T23:59:59-23:00'}", "outside the calendar"),
    "last year": ("dataset: {start: 9999-12-31}", "years 1000 to 9000"),
    "year 0": ("dataset: {start: 0000-01-01}", "looks like a timestamp"),
    "year 10000": ("dataset: {start: 10000-01-01}", "write a time as"),
    "zone 99": ("dataset: {start: 2026-01-01T00:00:00+99:00}", "looks like a timestamp"),
    "duration": ("schedule: {grace: " + "9" * 5_000 + "d}", "a duration is"),
    "duration digits": ("schedule: {grace: \uff12\uff14h}", "a duration is"),
    "runs": ("schedule: {active_runs_max: 99999999999}", "must be at most 10000"),
    "pool": ("schedule: {pool: " + "a" * 300 + "}", "at most 256 characters"),
    "time zone": ("dataset: {timezone: ../../etc/passwd}", "unknown IANA time zone"),
}
NUMBERS = [(name, text, words) for name, (text, words) in _NUMBERS.items()]

TEXTS: list[Hostile] = [
    Hostile("nested merge keys", _merge_keys().encode(), None, "syntax"),
    Hostile("alias bomb", _aliases().encode(), None, "syntax"),
    Hostile("nested lists", b"a: " + b"[" * 900 + b"]" * 900, 1, "syntax"),
    Hostile("very nested lists", b"a: " + b"[" * 300_000, 1, "syntax"),
    Hostile("nested mappings", b"{a: " * 100_000, 1, "syntax"),
    Hostile("deep block", "".join(f"{' ' * n}a:\n" for n in range(1_000)).encode(), 32, "syntax"),
    Hostile("nested dashes", b"a:\n" + b"- " * 100_000, 2, "syntax"),
    Hostile("questions", b"? " * 100_000, 1, "syntax"),
    Hostile("an anchor in itself", b"a: &a {b: *a}", 1, "syntax"),
    Hostile("a merge key in itself", b"a: &a {<<: *a}", 1, "syntax"),
    Hostile("doubled anchor", b"a: &a 1\nb: &a 2\nc: *a\n", None, ""),
    Hostile("base 60 of 400,000 parts", b"count: 1" + b":1" * 400_000, 1, "text"),
    Hostile("base 60 of 4,000 parts", b"count: 1" + b":1" * 4_000, 1, "syntax"),
    Hostile("many keys", b"".join(b"k%d: 1\n" % n for n in range(100_000)), None, "syntax"),
    Hostile("unknown keys", b"".join(b"keyy%d: 1\n" % n for n in range(20_000)), 1, "unknown-key"),
    Hostile("one key again", b"kind: a\n" * 20_000, 2, "duplicate-key"),
    Hostile("no text as keys", b"".join(b"%d: 1\n" % n for n in range(20_000)), 1, "key-not-text"),
    Hostile("a long key", b"a" * 100_000 + b": 1", 1, "syntax"),
    Hostile("a long text", b"description: " + b"a" * 1_000_000, 1, "text"),
    Hostile("a huge file", b"# a comment\n" * 1_000_000, 1, "unreadable"),
    Hostile("variables without end", b'description: "' + b"${A:-" * 1_900 + b'"', 1, "variable"),
    Hostile(
        "variables that are not set",
        b"description: a\nx: [" + b", ".join(b'"${N%d}"' % n for n in range(30_000)) + b"]",
        2,
        "unknown-key",
    ),
    Hostile("a tag", b"a: !!python/object/apply:os.system [id]", 1, "tag"),
    Hostile("a tag of a name", b"a: !!python/name:os.system", 1, "tag"),
    Hostile("a module", b"a: !!python/module:antigravity", 1, "tag"),
    Hostile("a directive", b"%YAML 9.9\n---\na: 1\n", None, "syntax"),
    Hostile("two documents", b"a: 1\n---\nb: 1\n", 2, "syntax"),
    Hostile("a tab", b"a:\n\tb: 1\n", 2, "syntax"),
    Hostile("U+0000", b"a: b\0c\n", 1, "syntax"),
    Hostile("U+0000 as an escape", b'description: "a\\0b"\n', 1, "text"),
    Hostile("a surrogate as an escape", b'description: "\\ud800"\n', 1, ""),
    Hostile("beyond Unicode", b'description: "\\U00110000"\n', 1, "syntax"),
    Hostile("a control character", b"a: 1\nb: \x07\n", 2, "syntax"),
    Hostile("Latin-1", b"a: 1\ndescription: caf\xe9\n", 2, "unreadable"),
    Hostile("UTF-16", "kind: parquet\n".encode("utf-16"), 1, "unreadable"),
    Hostile("a cut character", b"kind: \xe2\x82", 1, "unreadable"),
    Hostile("bytes", random.Random(7).randbytes(100_000), None, ""),
    Hostile("nothing", b"", 1, "empty-file"),
    Hostile("a list", b"- 1\n", 1, "not-a-mapping"),
]

_WORDS = (
    b"<<: *a", b"&a ", b"*a", b"!!set ", b"!!python/object:os.system ", b"[", b"]", b"{", b"}",
    b"- ", b"? ", b": ", b"|\n", b">-\n", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"# ", b"'", b'"',
    b"---\n", b"...\n", b"%TAG ! x\n", b"9999-12-31T23:59:59-23:00", b"0000-01-01", b".nan",
    b"-.inf", b"010", b"1:30", b"0x" + b"f" * 40, b"9" * 50, b"9" * 5_000, b"1e999", b"~", b"null",
    b"yes", b"${HOME}", b"${A:-", b"$${", b"../../x", b"\\ud800", b"\\0", b"\n", b"\r", b"  ",
    b"\xe2\x80\xa8", b"{date}", b"{date:%Q}", b"[z-a]", b"[!]", b"**/" * 50, b"*" * 200,
    b"2026-03-01", b"-1", b"1d", b"",
)  # fmt: skip


def mutated(content: bytes, seed: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(seed.choice((1, 1, 2, 3, 8))):
        at = seed.randrange(len(changed) + 1)
        end = min(len(changed), at + seed.choice((0, 0, 1, 3, 10, 80)))
        kind = seed.randrange(5)
        if kind == 0:
            changed[at:end] = seed.randbytes(end - at or 1)
        elif kind == 1:
            changed[at:end] = b""
        elif kind == 2:
            changed[at:at] = bytes(changed[at:end])
        else:
            changed[at:end] = seed.choice(_WORDS)
    return bytes(changed)
