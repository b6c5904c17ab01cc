"""Start Arrow in a process that does not need pandas."""

from __future__ import annotations

import sys


class _WithoutPandas:
    """A finder of modules, first on sys.meta_path."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not while Arrow starts", name=name)


def start_arrow() -> None:
    """Let Arrow look for pandas once, where it finds none.

    Arrow imports pandas (1 s of CPU, 60 MB) with the first `pa.array`, only to ask whether a value
    is a Series. Afterwards `to_pandas` still imports it, but `pa.array` takes a Series for any
    sequence: not for processes that run the code of source kinds, which may be a user's.
    """
    import pyarrow as pa

    if "pandas" not in sys.modules:
        finder = _WithoutPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)
