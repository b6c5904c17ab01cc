"""Unknown keys: each one becomes one problem, and its value is used for the key that was meant.

Keys are compared with the models before values are validated. A misspelled key is renamed in the
value, so that it causes no second problem (a missing key, a variant that cannot be determined).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import HINTS_MAX, PROBLEMS_MAX, Problem
from forebay.config.yaml.spelling import nearest

Model = type[BaseModel]

# What to do about a key that there was once.
_REMOVED: dict[KeyPath, str] = {
    ("job", "transport"): "; remove it: rows travel over Arrow Flight",
    ("options", "library"): "; remove it: kafka-python reads every topic",
}


# Words of other tools: the key that is meant, or what to do.
_RATES = "model.embedding_learning_rate and model.dense_learning_rate"
_NO_CHOICE = (
    f"; remove it: embeddings train with Adagrad, all else with Adam, at the constant {_RATES}"
)
_FOREIGN: dict[str, str] = {
    "batch_size": "minibatch_rows",
    "optimizer": _NO_CHOICE,
    "learning_rate": f"; write {_RATES}",
    "learning_rate_schedule": _NO_CHOICE,
    "epochs": "; remove it: a window's rows are trained on once",
}


def yaml_fields(model: Model) -> dict[str, FieldInfo]:
    """Fields of a model by their YAML key, without those that come from the file name."""
    fields: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if not (isinstance(extra, dict) and extra.get("from_file_name")):
            fields[field.alias or name] = field
    return fields


def check_keys(document: Document, model: Model, base: KeyPath = ()) -> list[Problem]:
    """Report unknown keys below `base` and repair the document's value in place."""
    checker = _KeyChecker(document)
    value = document.value
    for part in base:
        value = value[part]
    checker.walk(model, value, base, None)
    return checker.problems


class _KeyChecker:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def walk(self, annotation: Any, value: Any, path: KeyPath, tag: str | None) -> None:  # noqa: ANN401
        """Compare a value with its annotation; `tag` is the key that selects a union's variant."""
        if get_origin(annotation) is Annotated:
            annotation, *metadata = get_args(annotation)
            tag = next((_tag(item) for item in metadata if _tag(item)), tag)
            self.walk(annotation, value, path, tag)
        elif get_origin(annotation) in {Union, UnionType}:
            self._union(annotation, value, path, tag)
        elif isinstance(value, dict):
            self._mapping(annotation, value, path)
        elif isinstance(value, list) and get_origin(annotation) in {list, tuple}:
            for index, item in enumerate(value):
                self.walk(get_args(annotation)[0], item, (*path, index), None)
        elif isinstance(value, bool) and annotation in {int, float}:
            self._bool_as_number(path, [annotation])

    def _mapping(self, annotation: Any, value: dict[str, Any], path: KeyPath) -> None:  # noqa: ANN401
        if _is_model(annotation):
            self._model(annotation, value, path)
        elif get_origin(annotation) is dict:
            for key, item in value.items():
                self.walk(get_args(annotation)[1], item, (*path, key), None)

    def _model(self, model: Model, value: dict[str, Any], path: KeyPath) -> None:
        fields = yaml_fields(model)
        if model.model_config.get("extra") == "forbid":
            self._repair(model, fields, value, path)
        for key, field in fields.items():
            if key in value:
                self.walk(field.annotation, value[key], (*path, key), _tag(field))

    def _repair(
        self, model: Model, fields: dict[str, FieldInfo], value: dict[str, Any], path: KeyPath
    ) -> None:
        for key in [key for key in value if key not in fields]:
            absent = [name for name in fields if name not in value]
            missing = [name for name in absent if fields[name].is_required()]
            # Nobody reads more hints than this, and a file may have very many keys.
            few = len(self.problems) < HINTS_MAX
            meant = _FOREIGN.get(key, "")
            hint = (
                nearest(meant or key, fields, missing, absent) if few and meant[:1] != ";" else ""
            )
            self._report(key, path, model, fields, hint)
            self._rename(value, path, key, hint)

    def _rename(self, value: dict[str, Any], path: KeyPath, old: str, new: str) -> None:
        item = value.pop(old)
        if new and new not in value:
            value[new] = item
            self.document.rename(path, old, new)

    def _report(
        self, key: str, path: KeyPath, model: Model, fields: Iterable[str], hint: str
    ) -> None:
        if len(self.problems) > PROBLEMS_MAX:
            return  # more than are shown already, and each one takes time
        if key in model.model_fields:
            message = f"{key!r} is taken from the file's name: remove the line"
            problem = self.document.problem((*path, key), "key-from-file", message, at_key=True)
        else:
            where = f"in {dotted(path)}" if path else "at the top of the file"
            known = "" if hint else f"; known keys: {', '.join(fields)}"
            if not hint and (meant := _FOREIGN.get(key)):
                known = meant if meant[0] == ";" else f"; write train.{meant}"
            message = f"unknown key {key!r} {where}{_REMOVED.get((*path, key), known)}"
            problem = self.document.problem((*path, key), "unknown-key", message, hint, at_key=True)
        self.problems.append(problem)

    def _union(self, annotation: Any, value: Any, path: KeyPath, tag: str | None) -> None:  # noqa: ANN401
        members = get_args(annotation)
        models = [member for member in members if _is_model(member)]
        if isinstance(value, dict) and models:
            variant = self._variant(models, value, path, tag)
            if variant is not None:
                self._model(variant, value, path)
            return
        if isinstance(value, bool):
            self._bool_as_number(path, [_bare(member) for member in members])
        origin = list if isinstance(value, list) else dict
        fitting = [member for member in members if get_origin(_bare(member)) is origin]
        if len(fitting) == 1:
            self.walk(fitting[0], value, path, None)

    def _bool_as_number(self, path: KeyPath, allowed: list[Any]) -> None:
        """Pydantic would read yes as 1, and YAML reads an unquoted NO (Norway) as false."""
        if bool in allowed or not {int, float} & set(allowed):
            return
        raw = self.document.raw.get(path, "")
        expected = "text or a number" if str in allowed else "a number"
        message = f"{dotted(path)}: {expected} is expected, but unquoted {raw} is a bool in YAML"
        hint = ""
        if str in allowed:
            message, hint = f"{message}: quote it", f'"{raw}"'
        self.problems.append(self.document.problem(path, "wrong-type", message, hint))

    def _variant(
        self, models: list[Model], value: dict[str, Any], path: KeyPath, tag: str | None
    ) -> Model | None:
        if tag is None:
            return max(models, key=lambda model: len(value.keys() & yaml_fields(model).keys()))
        if tag not in value:
            self._repair_tag(models, value, path, tag)
        return next((model for model in models if value.get(tag) in _tag_values(model, tag)), None)

    def _repair_tag(
        self, models: list[Model], value: dict[str, Any], path: KeyPath, tag: str
    ) -> None:
        known = dict.fromkeys(key for model in models for key in yaml_fields(model))
        for key in list(value):
            if key not in known and nearest(key, known, [tag]) == tag:
                self._report(key, path, models[0], known, tag)
                self._rename(value, path, key, tag)
                return


def dotted(path: KeyPath) -> str:
    """A path as people write it: `dataset.streams.clicks.sources[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _is_model(annotation: object) -> TypeGuard[Model]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _bare(annotation: Any) -> Any:  # noqa: ANN401
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _tag(field: object) -> str | None:
    tag = field.discriminator if isinstance(field, FieldInfo) else None
    return tag if isinstance(tag, str) else None


def _tag_values(model: Model, tag: str) -> tuple[object, ...]:
    annotation = model.model_fields[tag].annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()
