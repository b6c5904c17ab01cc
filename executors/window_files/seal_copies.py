"""A seal with everything needed to continue its window, as one folder that any host can use.

It is laid out as the folder of the window: `checkpoints/<step>`, `scores`, `dead`, `poisons`,
`steps.jsonl` and `counters.bin`. Positions of data tasks are part of the seal. There may be more
dead letters than the seal has: they are cut off when the window is continued.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from forebay.executors.window_files.checkpoints import (
    CHECKPOINTS_FOLDER,
    SEAL_NAME,
    CheckpointStore,
    Seal,
)
from forebay.executors.window_files.dead_letters import DEAD_FOLDER
from forebay.executors.window_files.poisons import POISONS_FOLDER
from forebay.executors.window_files.scores import SCORES_FOLDER
from forebay.executors.window_files.steps import STEPS_NAME
from forebay.home.store.folder_store import link_or_copy
from forebay.system.files.durable import PRIVATE, copy_file, make_folder, write_atomically, writing
from forebay.system.files.trees import new_tree

COUNTERS_NAME = "counters.bin"
# Below the folder of the window, until it is in the store.
_COPY_FOLDER = "seal_copy"


def copy_seal(checkpoints: CheckpointStore) -> tuple[Seal, Path]:
    """Gather the newest seal while training continues, in a folder that training does not change.

    Files that never change again are linked. An earlier copy is replaced.

    Raises:
        InfrastructureError: when the disk refuses it.
    """
    window, copy = checkpoints.window_folder, checkpoints.window_folder / _COPY_FOLDER
    remove_copy(checkpoints)
    with writing(copy):
        make_folder(copy / SCORES_FOLDER)
        with checkpoints.newest_held() as newest:
            if newest is None:
                raise FileNotFoundError(f"{checkpoints.folder} has no seal")
            seal, model = newest
            _copy_tree(model.parent, copy / CHECKPOINTS_FOLDER / model.parent.name, link=True)
        for name in seal.scores:
            link_or_copy(window / SCORES_FOLDER / name, copy / SCORES_FOLDER / name)
        for name in (DEAD_FOLDER, POISONS_FOLDER):
            _copy_tree(window / name, copy / name)
        for name in (STEPS_NAME, COUNTERS_NAME):
            copy_file(window / name, copy / name)
    return seal, copy


def link_model(checkpoints: CheckpointStore, folder: Path) -> None:
    """Keep the newest checkpoint in another folder, in place of what is there.

    Raises:
        InfrastructureError: when the disk refuses it.
    """
    with writing(folder), checkpoints.newest_held() as newest:
        if newest is None:
            raise FileNotFoundError(f"{checkpoints.folder} has no seal")
        shutil.rmtree(folder, ignore_errors=True)
        _copy_tree(newest[1], folder, link=True)


def remove_copy(checkpoints: CheckpointStore) -> None:
    copy = checkpoints.window_folder / _COPY_FOLDER
    with writing(copy):
        if copy.exists():
            shutil.rmtree(copy)


def place_seal(copy: Path, checkpoints: CheckpointStore) -> None:
    """Place a copy as if it had been sealed here. The checkpoint comes last: it makes it count.

    Raises:
        InfrastructureError: when the disk refuses it.
    """
    window = checkpoints.window_folder
    for name in (SCORES_FOLDER, DEAD_FOLDER, POISONS_FOLDER):
        with new_tree(window / name, replace=True) as placed:
            _copy_tree(copy / name, placed)
            if name == DEAD_FOLDER:  # objects of a bucket have no modes
                for letters in placed.iterdir():
                    letters.chmod(PRIVATE)
    for name in (STEPS_NAME, COUNTERS_NAME):
        write_atomically(window / name, (copy / name).read_bytes())
    for seal in (copy / CHECKPOINTS_FOLDER).glob(f"*/{SEAL_NAME}"):
        with new_tree(checkpoints.folder / seal.parent.name) as placed:
            _copy_tree(seal.parent, placed)


def _copy_tree(source: Path, target: Path, *, link: bool = False) -> None:
    """Copy a folder, if it is there."""
    copied = link_or_copy if link else copy_file
    if source.is_dir():
        shutil.copytree(
            source,
            target,
            copy_function=lambda one, other: copied(Path(one), Path(other)),
            dirs_exist_ok=True,
        )
