"""The tool that plants small faults: where, how, and which tests it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mutation.modules import Tree
from support.mutation.places import places


def changed(source: str) -> set[str]:
    """Every text that the module can become, without the line that all of them share."""
    text = source.encode()
    return {change.applied(text).decode() for place in places(text) for change in place}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("a < b", {"(a <= b)", "(a >= b)"}),
        ("a == b", {"(a != b)"}),
        ("a is None", {"(a is not None)"}),
        ("a in b", {"(a not in b)"}),
        ("a < b < c", {"(a <= b < c)", "(a >= b < c)", "(a < b <= c)", "(a < b >= c)"}),
        ("a and b", {"(a or b)"}),
        ("x = 'ä', 5", {"x = 'ä', 6", "x = 'ä', (4)"}),
        ("a if b else c", {"a if False else c", "a if True else c"}),
        ("[a for a in b if a]", {"[a for a in b if True]"}),
        ("if a:\n    b", {"if False:\n    b", "if True:\n    b"}),
        ("def f(): return True", {"def f(): return False"}),
        ("def f(): return not a", {"def f(): return (not (not a))"}),
        ("def f(a: Literal[1], b=2): ...", {
            "def f(a: Literal[1], b=3): ...",
            "def f(a: Literal[1], b=(1)): ...",
        }),
    ],
)  # fmt: skip
def test_places_that_a_rule_has(source: str, wanted: set[str]) -> None:
    assert changed(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""',
        "from __future__ import annotations",
        "if TYPE_CHECKING:\n    import a",
        "_LOG.info('%d', 5)",
        "raise ValueError(f'{a:5}', 5)",
        "f'{1 < 2}'",
        "_POLL_SECONDS = 0.5",
        "wait(timeout_seconds=3)",
        "x: Literal[1]",
        "flag = True",
    ],
)
def test_places_that_are_no_rule(source: str) -> None:
    assert changed(source) == set()


def test_a_place_says_what_it_was() -> None:
    ((change, _),) = places(b"\n\nx = (a <\n     b)\n")
    assert (change.line, change.what) == (3, "a < b -> (a <= b)")


FILES = {
    "config/a.py": "",
    "config/b.py": "from forebay.config.a import x",
    "datatasks/c.py": "import forebay.config.b",
    "datatasks/d.py": "kind = 'forebay.config.a:Kind'",
    "executors/e.py": "import grpc",
    "executors/f.py": "from forebay.executors import e",
    "executors/job/g.py": "from forebay.executors.e import x",
    "executors/job/__init__.py": "",
    "mixture/h.py": "import threading\nthreading.Thread(target=h)",
    "operators/i.py": "if TYPE_CHECKING:\n    import airflow.triggers",
    "pyproject.toml": "[project]",
    "tests/support/s.py": "from forebay.datatasks import c",
    "tests/unit/config/test_a.py": "",
    "tests/unit/config/test_other.py": "",
    "tests/unit/test_far.py": "import support.s",
    "tests/unit/datatasks/test_some_c.py": "",
    "tests/property/test_config.py": "",
    "tests/property/test_p.py": "from forebay.datatasks.d import kind",
    "tests/unit/test_unrelated.py": "import forebay.mixture.h",
}


def test_glue_is_no_rule_and_the_nearest_tests_are_asked_first(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tree = Tree(tmp_path)
    rules = ["config/a.py", "config/b.py", "datatasks/c.py", "datatasks/d.py"]
    rules += ["executors/job/g.py", "operators/i.py"]
    assert list(tree.rule_modules()) == [tmp_path / each for each in rules]
    assert tree.tests_of(tmp_path / "config/a.py") == [
        ["tests/unit/config/test_a.py"],
        ["tests/unit/config/test_other.py"],
        ["tests/property/test_config.py", "tests/property/test_p.py"],
        ["tests/unit/datatasks/test_some_c.py", "tests/unit/test_far.py"],
    ]
