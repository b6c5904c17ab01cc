"""Source kinds by entry point: ours, an unknown one, and those of another package."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.projects import Project
from support.python_code import printed

from forebay.config.specs import registry
from forebay.config.specs.registry import kind_named
from forebay.errors import ConfigError, MissingExtraError

KIND = """\
from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind

class Tape(SourceKind):
    name = "tape"
    bounded = False
    source = "tapes.reader:TapeSource"

    class Options(Spec):
        address: str
"""


def test_reading_declarations_of_our_kinds_is_light() -> None:
    """Airflow's parser and `forebay check` do it."""
    code = (
        "import sys; from forebay.config.specs.registry import installed_kinds; installed_kinds()\n"
        "heavy = {'pyarrow', 'numpy', 'pandas', 'kafka', 'pyiceberg', 'fsspec'}\n"
        "print(*(heavy & set(sys.modules)))"
    )
    assert printed(code, os.environ) == "\n"


def test_an_unknown_kind_says_what_is_installed() -> None:
    with pytest.raises(ConfigError, match=r"unknown kind 'kakfa' \(did you mean kafka\?\).*log"):
        kind_named("kakfa")
    with pytest.raises(ConfigError, match=r"unknown kind 'qqqqqqqq'\. Installed kinds: "):
        kind_named("qqqqqqqq")  # like no kind: no slip


def package(folder: Path, module: str) -> None:
    info = folder / "tapes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tapes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[forebay.sources]\ntape = tapes:Tape\n")
    (folder / "tapes.py").write_text(module)


def check(folder: Path, source: str) -> str:
    (folder / "config/sources").mkdir(parents=True)
    (folder / "config/sources/reel.yaml").write_text(source)
    project = Project(folder, environment={"PYTHONPATH": str(folder)})
    result = project.forebay("check", check=False, process=True)
    assert result.returncode == 1
    return result.stdout


def test_a_kind_of_another_package(tmp_path: Path) -> None:
    """What reads its storage is not imported: there is no such module."""
    package(tmp_path, KIND)
    assert check(tmp_path, "kind: tape\noptions: {adress: x}\ncolumns: {a: int}\n") == (
        "config/sources/reel.yaml:2:11: unknown key 'adress' in options (did you mean address?)\n"
    )


def test_a_kind_whose_package_cannot_be_imported(tmp_path: Path) -> None:
    package(tmp_path, "import a_module_that_is_not_there\n")
    assert check(tmp_path, "kind: tape\ncolumns: {a: int}\n").endswith(
        ":1:7: kind 'tape' is registered as tapes:Tape and cannot be imported: "
        "No module named 'a_module_that_is_not_there'; reinstall or upgrade the package that "
        "provides it\n"
    )


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("", " is registered as tapes:Tape and cannot be imported: module 'tapes' has no attrib"),
        ("Tape = 5\n", ": tapes:Tape is not a SourceKind"),
        ("class Tape:\n    pass\n", ": tapes:Tape is not a SourceKind"),
        (KIND.replace('name = "tape"', ""), ": tapes:Tape has no name"),
        (KIND.replace("bounded = False", ""), ": tapes:Tape has no bounded"),
        (KIND.replace('"tape"', '"cassette"'), ": tapes:Tape has the name 'cassette'"),
    ],
)
def test_what_is_no_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, problem: str
) -> None:
    (tmp_path / "tapes.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tapes", raising=False)
    entry = EntryPoint("tape", "tapes:Tape", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {"tape": entry})
    with pytest.raises(MissingExtraError, match=f"^kind 'tape'{re.escape(problem)}"):
        kind_named.__wrapped__("tape")
