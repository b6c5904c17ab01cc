"""Sealed checkpoints: all of it or none of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.crashes import disk, tree_at
from support.minibatches import labelled
from support.there import there

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError, InfrastructureError
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.checkpoints import SEAL_NAME, Beginning, CheckpointStore, Seal
from forebay.mixture.counting import CountingLearner
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.system.files.trees import UNFINISHED_NAME


def minibatch(first: int, rows: int) -> Minibatch:
    return labelled("batch", range(first, first + rows), [0.0] * rows)


def seal(learner: CountingLearner, window_step: int, *, final: bool = False) -> Seal:
    position = TaskProgress(position=Position(0, window_step), rows_read=9)
    of = {"window": "2026-03-01", "generation": 1, "step": 100 + window_step}
    kept: Any = {"progress": {"clicks/0": position}, "base_seen": [], "scores": []}
    at = datetime(2026, 3, 1, tzinfo=UTC)
    whose = {"model_fingerprint": "clicks", "sealed_at": at, "runtime": "local"}
    now = {"window_step": window_step, "final": final, "seen": learner.seen()}
    return Seal.model_validate(of | kept | whose | now)


def stored(store: CheckpointStore) -> list[str]:
    names = (path.name for path in store.folder.iterdir())
    return sorted(name for name in names if not name.startswith("."))


def test_the_newest_seal_brings_model_and_positions_back_together(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    learner.learn(minibatch(0, 10))
    store.write(learner, seal(learner, 1))
    learner.learn(minibatch(10, 10))
    store.write(learner, seal(learner, 12))
    learner.learn(minibatch(20, 10))  # never sealed
    restored = CountingLearner(1)
    loaded = there(store.load(restored))
    assert (loaded.window_step, loaded.progress["clicks/0"].position) == (12, Position(0, 12))
    assert (restored.seen(), restored.seen()[0].rows) == (loaded.seen, 20)


def test_a_half_written_checkpoint_is_invisible(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    store.write(learner, seal(learner, 5))
    half = store.folder / UNFINISHED_NAME
    (half / "model").mkdir(parents=True)
    (half / "seal.json").write_text(seal(learner, 50).model_dump_json())
    unsealed = store.folder / "000000000060"
    (unsealed / "model").mkdir(parents=True)
    assert there(store.newest())[0].window_step == 5
    store.write(learner, seal(learner, 70))
    assert not half.exists()


class Nested(CountingLearner):
    """Saves into sub-folders, as TensorFlow does."""

    def save(self, directory: Path) -> None:
        (directory / "variables" / "deep").mkdir(parents=True)
        super().save(directory / "variables" / "deep")
        super().save(directory)


def test_a_sealed_checkpoint_survives_a_power_loss_as_a_whole(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path / "g1"), Nested(1)
    for step in (1, 2, 3):
        with disk(tmp_path) as watched:
            store.write(learner, seal(learner, step))
            newest = there(store.newest())
            folder = newest[1].parent
            assert newest[0].window_step == step
            assert watched.after_power_loss(folder) == tree_at(folder)
            assert watched.after_power_loss(tmp_path / "g1") is not None
    assert store.load(Nested(1)) is not None


def test_damage_is_named_and_not_loaded(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    store.write(learner, seal(learner, 5))
    newest = there(store.newest())
    victim = next(path for path in newest[1].iterdir() if path.is_file())
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(InfrastructureError, match=victim.name):
        store.load(CountingLearner(1))


def test_old_checkpoints_go_but_the_final_one_stays(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    for step in (1, 2, 3):
        store.write(learner, seal(learner, step))
    assert stored(store) == ["000000000002", "000000000003"]
    store.write(learner, seal(learner, 3, final=True))
    assert stored(store) == ["000000000003-final"]
    # The same barrier reached again after a restart replaces it.
    store.write(learner, seal(learner, 3, final=True))
    assert there(store.newest())[0].final


@pytest.mark.guarantee(
    "the database is restored while a window is in training",
    "nothing; the window starts again; read again: the window so far",
)
@pytest.mark.guarantee(
    "a checkpoint was started from a model that has since been replaced",
    "it is dropped; the window starts again from the newest model; read again: the window so far",
)
def test_a_checkpoint_that_was_begun_from_another_model_is_dropped(tmp_path: Path) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    parent = Parent(window="2026-02-28", generation=1)
    base = [RowSums(rows=9, sum=7, sum_of_squares=5)]
    store.drop_others(Beginning("plan", parent, "clicks", base))  # nothing is there yet
    begun = {"plan": "plan", "parent": parent, "base_seen": base}
    others = [
        Beginning("plan", Parent(window="2026-02-28", generation=2), "clicks", base),
        Beginning("plan", None, "clicks", None),
        Beginning("plan", parent, "purchases", base),
        # As after a backup of the database was restored.
        Beginning("plan of other rows", parent, "clicks", base),
        Beginning("plan", parent, "clicks", [RowSums(rows=9, sum=8, sum_of_squares=5)]),
    ]
    for other in others:
        store.write(learner, seal(learner, 1).model_copy(update=begun))
        store.drop_others(Beginning("plan", parent, "clicks", base))
        assert store.newest() is not None
        store.drop_others(other)
        assert store.newest() is None
    store.write(learner, seal(learner, 1))
    store.drop_others(Beginning("", None, "clicks", None))
    assert store.newest() is not None


@pytest.mark.guarantee(
    "a seal of a window in training is empty or truncated", "red, with its path and what to do"
)
@pytest.mark.parametrize("content", [b"", bytes(64), b'{"window": "2026'])
def test_a_seal_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    store, learner = CheckpointStore(tmp_path), CountingLearner(1)
    store.write(learner, seal(learner, 3))
    (path,) = store.folder.glob(f"*/{SEAL_NAME}")
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"^{path} is damaged: restore it, or move it away"):
        store.load(CountingLearner(1))
