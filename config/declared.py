"""A pipeline and its sources as written: what is stored, with variables filled in later.

Environment values may be secrets, so none is stored: a process that needs one takes it from its own
environment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from forebay.config.yaml.environment import (
    OPTIONS,
    fill_names,
    fill_text,
    is_reference,
    texts_of,
    with_leaves,
)
from forebay.config.yaml.keys import dotted
from forebay.config.yaml.positions import Document, KeyPath
from forebay.errors import ConfigError
from forebay.system.message import Message


class Reference(Message):
    """A text of a declaration that contains environment variables.

    source: whose declaration; empty for the pipeline's own. path: the keys that lead to the text.
    place: file, line and column of the text.
    """

    source: str = ""
    path: tuple[str | int, ...]
    place: str

    @property
    def is_option(self) -> bool:
        """Whether the text is an option of a source: only a process that opens it needs it."""
        return bool(self.source) and self.path[0] == OPTIONS


@dataclass(frozen=True)
class Declared:
    """One pipeline and its sources by name, as JSON values, with nothing filled in."""

    pipeline: dict[str, Any]
    sources: dict[str, dict[str, Any]]
    references: tuple[Reference, ...]

    @classmethod
    def of(cls, pipeline: Document, sources: Mapping[str, Document]) -> Declared:
        """Build it from files that were read and have no problems."""
        documents = {"": pipeline, **sources}
        found = [each for name, doc in documents.items() for each in _references(name, doc)]
        return cls(
            pipeline=_plain(pipeline.written),
            sources={name: _plain(document.written) for name, document in sources.items()},
            references=tuple(found),
        )

    def settled(self, names: Collection[str], environ: Mapping[str, str]) -> Declared:
        """A copy with some variables, which must not be secrets, filled in permanently."""

        def leaf(value: object, _: KeyPath) -> object:
            return fill_names(value, names, environ) if isinstance(value, str) else value

        sources = {name: with_leaves(source, leaf) for name, source in self.sources.items()}
        return Declared(with_leaves(self.pipeline, leaf), sources, self.references)


def filled_in(
    value: dict[str, Any], references: Iterable[Reference], environ: Mapping[str, str], who: str
) -> dict[str, Any]:
    """A declaration with the texts of these references filled in.

    references: the texts that are needed now; the others stay as written. who: the process that
    needs them, named in the error.

    Raises:
        ConfigError: naming each variable that is not set, where it is written, and what to do.
    """
    by_path = {each.path: each for each in references}
    wrong: list[str] = []

    def leaf(found: Any, path: KeyPath) -> Any:  # noqa: ANN401 - a value of JSON
        reference = by_path.get(path)
        if reference is None or not isinstance(found, str):
            return found
        filled, missing = fill_text(found, path, environ)
        wrong.extend(
            f"{reference.place}: {dotted(path)}: variable {name} is not set for {who}: set it "
            f"where the job is submitted, or write ${{{name}:-default}}"
            for name in missing
        )
        return filled

    filled: dict[str, Any] = with_leaves(value, leaf)
    if wrong:
        raise ConfigError("\n".join(wrong))
    return filled


def as_written(shown: dict[str, Any], written: object) -> dict[str, Any]:
    """A dumped declaration in which texts with variables are as written in YAML."""
    texts = {path: text for path, text in texts_of(written) if is_reference(text)}
    changed: dict[str, Any] = with_leaves(shown, lambda value, path: texts.get(path, value))
    return changed


def _references(source: str, document: Document) -> Iterable[Reference]:
    for path, text in texts_of(document.written):
        if is_reference(text):
            place = document.value_place(path)
            where = f"{document.file}:{place.line}:{place.column}"
            yield Reference(source=source, path=path, place=where)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a YAML value
    return with_leaves(value, lambda it, _: it.isoformat() if isinstance(it, date) else it)
