"""`make docs`: every page is in the site, a broken link fails the build, nothing is fetched."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pytest

SETTINGS = Path("docs/site/conf.py")
STRICT = ("--quiet", "--fail-on-warning", "--keep-going", "--nitpicky")
LOADED_BY = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
# `rel` of links that a browser follows only when a reader clicks.
NOT_LOADED = {"index", "next", "prev", "search", "author", "copyright"}


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    settings = (source / SETTINGS).parent
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *STRICT, "--conf-dir", str(settings), source, site],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def named() -> list[str]:
    settings = runpy.run_path(str(SETTINGS))
    return [settings["root_doc"], *chain.from_iterable(settings["NAVIGATION"].values())]


class Loads(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADED_BY.get(tag, ""))
        if address and values.get("rel") not in NOT_LOADED:
            self.found.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(Path.cwd(), folder)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


def test_the_side_bar_names_every_page_once() -> None:
    pages = [*Path().glob("*.md"), *Path("docs").rglob("*.md")]
    assert sorted(named()) == sorted(str(page.with_suffix("")) for page in pages)


def test_make_builds_it_as_strictly_as_this_test() -> None:
    recipe = Path("Makefile").read_text().partition("\ndocs:")[2].partition("\n\n")[0]
    assert [option for option in STRICT if option not in recipe] == []


def test_the_site_has_every_page_and_reading_it_needs_no_network(site: Path) -> None:
    pages = named()
    assert [page for page in pages if not (site / f"{page}.html").is_file()] == []
    assert f"url={pages[0]}.html" in (site / "index.html").read_text()
    assert list(site.glob("_downloads/*/run.py"))  # a file of the code that a page links to
    loaded = {address for page in site.rglob("*.html") for address in Loads(page.read_text()).found}
    assert len(loaded) > 5
    assert [address for address in loaded if re.match(r"\w+:|//", address)] == []
    styles = "".join(style.read_text() for style in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )\s*[\"']?(?:https?:)?//[^)]*", styles) == []


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    shutil.copytree(SETTINGS.parent, tmp_path / SETTINGS.parent)
    (tmp_path / "docs/other.md").write_text("# Other\n")
    links = ["docs/other.md", "docs/lost.md", "docs/other.md#part", "lost.py"]
    text = " ".join(f"[link]({link})" for link in links)
    (tmp_path / "README.md").write_text(f"# First\n\n{text}\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    missing = re.findall(r"README.md:3: WARNING: (.*) \[myst", built.stderr)
    assert missing == [
        "'myst' cross-reference target not found: 'docs/lost.md'",
        "local id not found in doc 'docs/other': 'part'",
        "'myst' cross-reference target not found: 'lost.py'",
    ]
