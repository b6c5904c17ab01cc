"""`make setup` takes its installer by hash, as everything else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pip

SCRIPT = "#!/bin/sh\ntouch {ran}\n"


def strangers_wheel(folder: Path, version: str, ran: Path) -> None:
    """A wheel of uv that anybody could have made: its program notes that it ran."""
    about = f"uv-{version}.dist-info"
    files = {
        f"uv-{version}.data/scripts/uv": SCRIPT.format(ran=ran),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: uv\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"uv-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in (files | {f"{about}/RECORD": record}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)


def test_a_strangers_installer_is_refused(tmp_path: Path) -> None:
    (version,) = re.findall(r"^uv==(\S+)", Path("requirements.lock").read_text(), re.MULTILINE)
    strangers_wheel(tmp_path, version, tmp_path / "ran")
    # With this environment's pip, since to unpack another takes longer than all the rest.
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    made = subprocess.run(
        ["make", "setup", f"VENV={tmp_path / 'venv'}", f"PYTHON={sys.executable}"],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (tmp_path / "ran").exists()
    assert made.returncode != 0
    assert "DO NOT MATCH THE HASHES" in made.stderr
