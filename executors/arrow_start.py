"""Arrow without pandas, for the processes that have no use for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from forebay.config.specs.registry import kind_named


class _WithoutPandas:
    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not while Arrow starts", name=name)


def start_arrow(kinds: Iterable[str] = ()) -> None:
    """Let Arrow look for pandas once while it cannot be found.

    Arrow imports pandas (1 s of CPU, 60 MB) with the first `pa.array`, only to ask whether a value
    is a Series. Afterwards `to_pandas` still imports it, but `pa.array` treats a Series like any
    sequence. So if one of `kinds`, the source kinds of this process, is a third party's, Arrow
    starts as usual.
    """
    import pyarrow as pa

    others = any(not kind_named(kind).__module__.startswith("forebay.") for kind in kinds)
    if others or "pandas" in sys.modules:
        pa.array([0])
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
