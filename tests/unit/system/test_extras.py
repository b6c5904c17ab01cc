"""One error for every optional dependency that is not there."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from forebay.errors import MissingExtraError
from forebay.system.extras import EXTRAS, missing_modules, require_extra

MODULES = [(name, module) for name, extra in EXTRAS.items() for module in extra.modules]


def test_every_extra_is_one_that_can_be_installed() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_installed_is_not_reported(name: str) -> None:
    require_extra(name)
    assert missing_modules(name) == []


@pytest.mark.parametrize(("name", "module"), MODULES)
def test_the_error_names_extra_purpose_and_interpreter(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    words = f"{EXTRAS[name].purpose} needs the extra '{name}': pip install 'forebay[{name}]'"
    where = f"({sys.executable} has no {module})"
    with pytest.raises(MissingExtraError, match=re.escape(f"{words} {where}")):
        require_extra(name)
