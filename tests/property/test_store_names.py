"""Names in a store: any text makes one, it is recognised, and it leads nowhere else."""

from __future__ import annotations

import os

from hypothesis import example, given
from hypothesis import strategies as st

from forebay.home.store.base import is_tree, name_in, new_name, require_name

TEXT = st.text(max_size=400)
NAME = f"f/x-{'0' * 32}"


@given(folder=TEXT, stem=TEXT, tree=st.booleans(), inside=st.sampled_from(["", "a", "a/b.tree"]))
@example(folder="..", stem="../..", tree=False, inside="")
@example(folder=f"{NAME}/{NAME}.tree", stem=NAME, tree=True, inside="a")
def test_any_text_makes_a_name_of_its_own(folder: str, stem: str, tree: bool, inside: str) -> None:
    name = new_name(folder, stem, tree=tree)
    assert require_name(name) == name
    assert is_tree(name) is tree
    assert os.path.normpath(name) == name
    assert max(map(len, name.split("/"))) < 200
    assert name_in(f"{name}/{inside}" if inside else name) == name
    assert len({name, *(new_name(folder, stem, tree=tree) for _ in range(2))}) == 3
