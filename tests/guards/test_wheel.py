"""The wheel: everything below forebay/, nothing of the demo's YAML, and it works when installed."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from support.declarations import declarations, write
from support.wheels import built_wheel, run

from forebay import __version__

DATA_FILES = {
    "forebay/py.typed",
    "forebay/report/report.html.j2",
    "forebay/embedded/kafka/jars.sha256",
    "forebay/embedded/kafka/pom.xml",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def entries(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_everything_is_below_one_name(entries: set[str]) -> None:
    """`config`, `executors`, `mixture` are import names of other projects."""
    own = ("forebay/", f"forebay-{__version__}.dist-info/")
    assert [entry for entry in entries if not entry.startswith(own)] == []


def test_every_module_and_data_file_is_there_and_no_yaml(entries: set[str]) -> None:
    links = [link for link in Path("forebay").iterdir() if link.is_symlink()]
    modules = {str(file) for file in Path("forebay").rglob("*.py")}
    modules |= {f"{link}/{file.relative_to(link)}" for link in links for file in link.rglob("*.py")}
    assert {entry for entry in entries if entry.endswith(".py")} == modules
    assert entries >= DATA_FILES
    assert [entry for entry in entries if entry.endswith((".yaml", ".yml"))] == []


def test_it_works_where_the_readme_installs_it(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own; what it depends on is borrowed from this one."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv/bin/python"
    (line,) = re.findall(r"^pip install .*", Path("README.md").read_text(), re.MULTILINE)
    own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    alone = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_PYTHON": str(python), "PATH": own}
    run(["bash", "-c", line], wheel.parents[1], **alone)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    # Second on the path: what stands in the new environment is found first.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run([str(python), "-c", "import forebay.config; print(forebay.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")
    found = "import importlib.util as u; print(u.find_spec('examples'), u.find_spec('tests'))"
    assert run([str(python), "-c", found], tmp_path).split() == ["None", "None"]
    command = str(tmp_path / "venv/bin/forebay")
    assert run([command, "--version"], tmp_path, PYTHONPATH="").split()[-1] == __version__
    write(tmp_path / "config", declarations())
    checked = run([command, "check"], tmp_path, PYTHONPATH="")
    assert checked == "9 sources, 5 pipelines: no problems\n"
