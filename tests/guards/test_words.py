"""The field's words: each term is explained once, and words that were given up do not come back."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support.budgets import ROOMS, source_files

SOURCES = source_files()
GLOSSARY = "\n".join(
    Path("docs", page).read_text() for page in ("concepts.md", "internals/architecture.md")
)
TERMS = re.findall(r"^\*\*([^*]+)\.\*\*", GLOSSARY, re.MULTILINE)
# What a name says in plain English, or in a word that every engineer knows.
ORDINARY = frozenset(Path(__file__).with_name("ordinary_words.txt").read_text().split())
# Old word -> what it is called now. The patterns read code and texts of the product.
GIVEN_UP = {
    r"\bbecause\s*[=:]|\.because\b": "reason",
    r"\bslot_base\b|\balign_slots\b|\bslots?: (?:int|dict|npt)": "hour: a slot is Airflow's",
    r"\b_?Lanes?\b|\blanes_of\b": "QueueSources, TaskQueue, EpochQueue",
    r"\bCrew\b|\bcrew\b": "JobProcesses, ComponentGroup",
    r"\bMember\b": "RoleProcess, RegisteredExecutor, ComponentProcess",
    r"\blearns: str|\blearns=|\.learns\b|\blearns_fingerprint\b": "model_fingerprint",
    r"\brefuse_other_meaning\b|\brequire_same_meaning\b": "require_compatible",
    r"\bForeseen\w*|\bforeseen\b|\bForesight\b": "backfill_cost",
    r"\bTally\b|\btally\b": "DurableCounters",
    r"\btell_registered\b": "mark_registered",
    r"\bPieces?\b|\bPacked\b|\bclass Cut\b|\bclass Unit\b|\bUNIT_TYPE\b": (
        "row range, chunk, frame, minibatch"
    ),
    r"\bSunk\b": "RecordedPlan",
    r"\bclass Asked\b|: Asked\b|\bAsked[.(]": "StageRequest",
    r"\basked_windows?\b": "requested_windows",
    r"\(Wire\)|\bimport .*\bWire\b|\[Wire\]": "Message",
    r"\bRoleFailure\b": "ErrorReport",
    r"\bturn_taking\b|\bturn_files\b|\bwindows_ahead\.py\b": "turn/previous_run, turn/snapshot",
    r"\bdemo[./]saying\b|\bdemo[./]ways\b": "demo/console, demo/mode",
}


def test_each_term_is_explained_once() -> None:
    assert len(TERMS) > 30
    assert [term for term, count in Counter(map(str.lower, TERMS)).items() if count > 1] == []


def test_every_word_of_a_name_is_ordinary_or_explained() -> None:
    """A new module or room brings its term to the glossary, or has an ordinary name."""
    terms = re.findall(r"\*+([A-Za-z ]+)\.?\*+", GLOSSARY)
    explained = {word for term in terms for word in re.findall(r"[a-z]+", term.lower())}
    words = {
        word: file
        for file in SOURCES
        if file.parts[0] in ROOMS
        for part in file.with_suffix("").parts
        for word in part.strip("_").split("_")
    }
    unknown = {
        word: str(file)
        for word, file in words.items()
        if word not in ORDINARY and not {word, word.removesuffix("s")} & explained
    }
    unknown.pop("init", None)
    assert unknown == {}


@pytest.mark.parametrize(("old", "now"), GIVEN_UP.items(), ids=[*GIVEN_UP.values()])
def test_old_words_do_not_come_back(old: str, now: str) -> None:
    pattern = re.compile(old)
    texts = [*SOURCES, *Path("docs").rglob("*.md"), Path("README.md")]
    found = [
        f"{file}:{number}: {line.strip()} (call it {now})"
        for file in texts
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
