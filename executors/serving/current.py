"""What stands beside the models of a serving path: which one serves, and whose path it is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Published
from forebay.home.database.identity import read_marker
from forebay.mixture.serving.served_features import FEATURES, ServedColumn, ServedFeatures
from forebay.system.files.durable import folder_checksums
from forebay.system.message import Message

CURRENT, OWNER = "current.json", "owner.json"


class Owner(Message):
    """owner.json: the one line that may write to a path. home: the id of its home."""

    home: str
    pipeline: str
    line: str

    @classmethod
    def of(cls, chain: ModelChain) -> Owner:
        marker = read_marker(chain.home)
        home = "" if marker is None else marker.id
        return cls(home=home, pipeline=chain.pipeline, line=chain.line)

    @property
    def words(self) -> str:
        return f"line {self.line!r} of pipeline {self.pipeline!r} (home {self.home})"


class Switched(Message):
    """A switch, as `current.json` and `forebay models show` both say it.

    step: of its window, where that had not ended; 0 otherwise. integer: the folder beside
    current.json. hash: of the model, from the checksums of its files.
    """

    pipeline: str
    line: str
    window: str
    generation: int
    step: int
    integer: int
    hash: str
    published_at: datetime

    @classmethod
    def of(cls, chain: ModelChain, published: Published) -> Switched:
        same = {"window", "generation", "step", "integer", "published_at"}
        return cls(
            pipeline=chain.pipeline,
            line=chain.line,
            hash=published.stored.checksum,
            **published.model_dump(include=same),
        )


class Current(Switched):
    """current.json. files: SHA-256 of each file of the model. features: columns that it reads."""

    features: dict[str, ServedColumn]
    files: dict[str, str]

    @classmethod
    def of_model(cls, switched: Switched, model: Path) -> Current:
        features = ServedFeatures.of_file(model / FEATURES)
        columns = {} if features is None else features.columns
        return cls(**switched.model_dump(), features=columns, files=folder_checksums(model))
