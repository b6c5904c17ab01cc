"""One misspelled letter in any key of any model: one error, at the key, with the right key."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declarations import (
    ALPHABET,
    Key,
    declarations,
    dump,
    key_place,
    keys_of_models,
    misspellings,
    models_and_keys,
    renamed,
    write,
)

from forebay.config.load import load_project
from forebay.config.schema import json_schema
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import installed_kinds
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.keys import check_keys
from forebay.config.yaml.positions import Document

FILES = declarations()


@cache
def schema() -> dict:
    return json_schema(installed_kinds())


@cache
def keys() -> list[Key]:
    """Each key of each model once."""
    return list(
        {(key.definition, key.key): key for key in keys_of_models(schema(), FILES)}.values()
    )


def test_the_whole_project_is_valid(tmp_path: Path) -> None:
    write(tmp_path / "config", FILES)
    project = load_project(tmp_path / "config", {})
    assert [str(problem) for problem in project.problems] == []
    assert len(project.sources) + len(project.pipelines) == len(FILES)
    for value in FILES.values():
        jsonschema.Draft202012Validator(schema()).validate(value)


def test_every_key_of_every_model_is_tried() -> None:
    assert {(key.definition, key.key) for key in keys()} == models_and_keys(schema())


@pytest.mark.parametrize("alone", [False, True], ids=["with the other keys", "required keys only"])
def test_one_misspelled_key_is_one_error(tmp_path: Path, alone: bool) -> None:
    """Besides what is wrong with the key spelled right: some keys alone contradict the others.

    A source is loaded alone, a pipeline with all of its sources.
    """
    letters = random.Random(3)
    sources = {file: value for file, value in FILES.items() if file.startswith("sources/")}
    write(tmp_path / "pipelines", sources)
    for key in keys():
        known = set(schema()["$defs"][key.definition]["properties"])
        kept = required(key) if alone else known
        if key.key == "security_protocol" and alone:
            continue  # the declared one asks for other keys, but only where it is spelled right
        wrong = sorted(misspellings(key.key) - known)
        config = tmp_path / key.file.partition("/")[0]
        file = config / key.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dump(renamed(FILES[key.file], key.path, key.key, key.key, alone=kept)))
        usual = [problem.code for problem in load_project(config, {}).problems]
        for misspelled in letters.sample(wrong, 2):
            value = renamed(FILES[key.file], key.path, key.key, misspelled, alone=kept)
            text = dump(value)
            file.write_text(text)
            problems = load_project(config, {}).problems
            place = key_place(text, key.path, misspelled)
            found = {p.code: (p.file, p.line, p.column, p.code, p.hint) for p in problems}
            wanted = (str(file), *place, "unknown-key", key.key)
            assert found.get("unknown-key") == wanted, (key, misspelled, problems)
            codes = sorted(problem.code for problem in problems)
            assert codes == sorted([*usual, "unknown-key"]), (key, misspelled, problems)
        file.unlink()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_hint_is_the_right_key(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(keys()))
    letter = data.draw(st.sampled_from(ALPHABET))
    misspelled = data.draw(st.sampled_from(sorted(misspellings(key.key, letter))))
    known = schema()["$defs"][key.definition]["properties"]
    if misspelled in known:
        return
    kept = data.draw(st.sets(st.sampled_from(sorted(known)))) | required(key)
    assert hints(key, misspelled, kept) == [key.key]


def test_letters_left_out_or_swapped() -> None:
    for key in keys():
        for misspelled in misspellings(key.key, ""):
            assert hints(key, misspelled, required(key)) == [key.key], (key, misspelled)


def required(key: Key) -> set[str]:
    """Keys without which the model's file is not valid; each kind in use has options.

    A dataset has one label or several; what Kafka's messages are says which schemas they have.
    """
    either = {
        "SourceSpec": {"options"},
        "DatasetSpec": {"label", "named_labels"},
        "KafkaOptions": {"format", "schema_file", "schema_ids", "message_type"},
    }
    extra = either.get(key.definition, set())
    return set(schema()["$defs"][key.definition].get("required", [])) | extra


def hints(key: Key, misspelled: str, kept: set[str]) -> list[str]:
    document = Document(key.file)
    document.value = renamed(FILES[key.file], key.path, key.key, misspelled, alone=kept)
    if key.path[:1] == ("options",):
        options = installed_kinds()[FILES[key.file]["kind"]].Options
        problems = check_keys(document, options, ("options",))
    else:
        model = SourceSpec if key.file.startswith("sources/") else PipelineSpec
        problems = check_keys(document, model)
    return [problem.hint for problem in problems]
