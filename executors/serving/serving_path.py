"""Brings a serving path to what serves: after each switch, and after a kill by whoever is next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ConfigError, DataError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Published
from forebay.executors.serving.current import CURRENT, OWNER, Current, Owner, Switched
from forebay.executors.serving.folder_place import MODEL, FolderPlace
from forebay.home.database.open import database_of
from forebay.home.database.recorded import recorded_lines
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store.open import store_of
from forebay.system.extras import require_extra

if TYPE_CHECKING:
    from forebay.executors.serving.bucket_place import BucketPlace

    ServingPlace = FolderPlace | BucketPlace

KEY = "job.publish.serving"
_LINE = "{line}"
# Of another process that writes a large model to a slow place.
_ALONE_SECONDS = 600.0
_INTEGER_MAX = 2**63 - 1  # of model servers


class ServingPath:
    """The path at which a line serves. place: None where none is declared for it."""

    def __init__(self, project: Project, pipeline: PipelineSpec, chain: ModelChain) -> None:
        self._chain = chain
        self._kept = pipeline.job.publish.serving_kept
        self._declared = pipeline.job.publish.serving
        self.place = _place(project.root, self._declared, chain.line)
        self._where = ""
        if pipeline.name in project.pipeline_files:
            place = project.where("pipelines", pipeline.name, ("job", "publish", "serving"))
            self._where = "{}:{}:{}: ".format(*place)

    @property
    def elsewhere(self) -> str:
        """That the declared path is another line's, and what to write; empty where it is not."""
        if self._declared is None or self.place is not None:
            return ""
        return (
            f"line {self._chain.line!r} has no serving path: {KEY} is that of line "
            f"{DEFAULT_LINE!r}. Write {_LINE} into it to give each line one of its own"
        )

    def require_own(self) -> None:
        """Claim the path for this line, unless another one has.

        Raises:
            ConfigError: when it is another line's, or holds models of somebody else.
        """
        if self.place is None:
            return
        place, own = self.place, Owner.of(self._chain)
        content = place.read(OWNER)
        if content is None:
            if place.read(CURRENT) is None and (others := place.integers()):
                raise ConfigError(
                    f"{self._where}{place.url} holds {min(others)}/, which no pipeline wrote "
                    f"there: name an empty folder in {KEY} of pipeline {own.pipeline!r}"
                )
            place.write(OWNER, own.model_dump_json(indent=1).encode())
            # Read again: of two that claim it at once, one finds the other.
            content = place.read(OWNER) or b""
        owner = _owner(content, f"{self._where}{place.url}/{OWNER}")
        if owner != own:
            raise ConfigError(
                f"{self._where}{place.url} is where {owner.words} serves, so {own.words} cannot "
                f"serve there: give {KEY} of pipeline {own.pipeline!r} another path. If the other "
                f"one is gone for good, remove {place.url}/{OWNER}"
            )

    def is_behind(self, published: Published) -> bool:
        """Whether current.json is missing, damaged, or about another switch."""
        if self.place is None:
            return False
        try:
            current = Current.model_validate_json(self.place.read(CURRENT) or b"")
        except ValidationError:
            return True
        return not Switched.of(self._chain, published).model_dump().items() <= dict(current).items()

    def bring_up(self) -> None:
        """Write the model that serves, then current.json, and remove the oldest models.

        The path's readers find one whole model after the other, whenever this process dies.

        Raises:
            ConfigError: see `require_own`.
            DataError: when the model is missing or damaged in the store.
            InfrastructureError: when the path cannot be written or reached.
        """
        if self.place is None or self._chain.published() is None:
            return
        name = f"serving-{self._chain.pipeline}-{self._chain.line}"
        with database_of(self._chain.home).exclusive(name, _ALONE_SECONDS):
            self.require_own()
            while (published := self._chain.published()) is not None:
                if self._brought(self.place, published):
                    return

    def _brought(self, place: ServingPlace, published: Published) -> bool:
        """Whether the path now has what serves: it may have been switched meanwhile."""
        integers = place.integers()
        highest = max(integers, default=0)
        if highest > published.integer:  # of a database before it was restored, say
            if highest >= _INTEGER_MAX:
                raise DataError(f"{place.url}/{highest}: no integer is higher, so remove it")
            self._chain.raise_integer(highest + 1)
            return False
        whole = integers.get(published.integer, False)
        if not whole or self.is_behind(published):
            try:
                self._write(place, published, whole=whole)
            except DataError:
                if self._chain.published() == published:
                    raise
                return False  # the store no longer keeps it: another one serves
        integers[published.integer] = True
        kept = sorted((each for each, is_whole in integers.items() if is_whole), reverse=True)
        for integer in integers.keys() - set(kept[: self._kept]):
            place.remove(integer)
        return self._chain.published() == published

    def _write(self, place: ServingPlace, published: Published, *, whole: bool) -> None:
        model = store_of(self._chain.home).tree(published.stored)
        if not (model / MODEL).is_file():
            raise DataError(f"{published.path} holds no {MODEL}: no server can read it")
        if not whole:
            place.put(published.integer, model)
        current = Current.of_model(Switched.of(self._chain, published), model)
        place.write(CURRENT, current.model_dump_json(indent=1).encode())


def bring_up_all(home: Home, project: Project) -> None:
    """Bring up the paths of all lines of the declared pipelines, see `ServingPath.bring_up`."""
    for name, pipeline in project.pipelines.items():
        for line in recorded_lines(home, name):
            ServingPath(project, pipeline, ModelChain(home, name, line)).bring_up()


def _place(root: Path, declared: str | None, line: str) -> ServingPlace | None:
    if declared is None or (_LINE not in declared and line != DEFAULT_LINE):
        return None
    path = declared.replace(_LINE, line)
    if not path.startswith("s3://"):
        return FolderPlace(root / path)
    require_extra("s3")
    from forebay.executors.serving.bucket_place import BucketPlace

    return BucketPlace(path)


def _owner(content: bytes, place: str) -> Owner:
    try:
        return Owner.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(f"{place} is damaged: if the path is this line's, remove it") from error
