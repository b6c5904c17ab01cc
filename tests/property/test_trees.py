"""A tree is stored whole or not at all, wherever the writer dies and even if the power goes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.crashes import Disk, Tree, deaths, disk, tree_at

from forebay.system.files.trees import new_tree, remove_tree

NAMES = st.sampled_from("abc")
TREES: st.SearchStrategy[Tree] = st.dictionaries(
    NAMES,
    st.recursive(
        st.binary(max_size=3), lambda below: st.dictionaries(NAMES, below, max_size=2), max_leaves=4
    ),
    min_size=1,
    max_size=2,
)


def fill(folder: Path, tree: Tree, watched: Disk) -> None:
    for name, content in tree.items():
        watched.touch()
        if isinstance(content, dict):
            (folder / name).mkdir()
            fill(folder / name, content, watched)
        else:
            (folder / name).write_bytes(content)


@settings(max_examples=30, deadline=None)
@given(old=st.none() | TREES, new=TREES, beside=st.booleans())
def test_a_death_at_any_moment(old: Tree | None, new: Tree, beside: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        target = root / "window" / "tree"

        def write(tree: Tree, watched: Disk, to: Path = target) -> None:
            with new_tree(to, replace=True) as folder:
                fill(folder, tree, watched)

        def put_back(watched: Disk) -> None:
            """The next write, of this tree or of one beside it, removes what is left over."""
            write(old or new, watched, target.with_name("other") if beside else target)
            left = {path.name for path in target.parent.iterdir()}
            assert left <= {"tree", "other", ".trees.lock"}
            if old is None:
                remove_tree(target)
            else:
                write(old, watched)
                assert watched.after_power_loss(target) == tree_at(target) == old

        if old is not None:
            with disk(root) as watched:
                write(old, watched)
        seen = []
        for died in deaths(root, lambda watched: write(new, watched)):
            seen.append(tree_at(target))
            assert seen[-1] in (old, new)
            if target.parent.exists():
                assert died.after_power_loss(target) in (old, new)
                assert died.after_power_loss(target, named=True) in (old, new)
                put_back(died)
        assert (seen[0], seen[-1]) == (old, new)
