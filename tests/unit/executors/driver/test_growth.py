"""Whatever keeps an open window from growing ends it: a trainer waits for a silent stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forebay.errors import DataError
from forebay.executors.driver.growth import Grower
from forebay.system.output.error_report import ErrorReport


@pytest.mark.parametrize("error", [DataError("rows are gone"), KeyError("a fault of ours")])
def test_an_error_of_any_kind_ends_the_window(error: Exception) -> None:
    served: Any = SimpleNamespace(window="2026-03-01", generation=1, plan=None)
    windows, refused = [served, None], list[tuple[Any, ErrorReport]]()
    service: Any = SimpleNamespace(
        growing=lambda: windows.pop(0), refuse=lambda *found: refused.append(found)
    )

    def growth_of(_plan: object) -> Any:
        raise error

    Grower(service, ledger=None, growth_of=growth_of)._run()  # type: ignore[arg-type]
    ((window, report),) = refused
    assert window is served
    assert str(error).strip("'") in report.message
