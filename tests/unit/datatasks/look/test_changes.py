"""What became of the data of planned windows; tests of files and streams are in acceptance."""

from __future__ import annotations

from pathlib import Path

from support.stages import START, noon, stages, table
from support.there import there

from forebay.datatasks.look.changes import changes_since
from forebay.datatasks.sources.memory.source import MEMORY


def test_a_source_that_was_left_out_is_told_of_once_it_is_complete(tmp_path: Path) -> None:
    with stages(tmp_path, ["a", "b"], source={"ready": {"late": "skip"}}) as found:
        MEMORY["a"] = MEMORY["b"] = table([noon(0)])
        found.late["b"] = START
        for use in ("a", "b"):
            found.source(0, use)
        found.sink(0)
        plan = there(found.ledger.latest_plan("2026-03-01"))
        asked = (found.root, found.pipeline, found.sources, found.ledger, [plan])
        assert changes_since(*asked) == {}, "it is as late as it was"
        found.late.clear()
        told = ["b was left out when it was trained, and has 1 row now"]
        assert changes_since(*asked) == {"2026-03-01": told}
