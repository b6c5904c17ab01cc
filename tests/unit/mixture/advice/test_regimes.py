"""The table of measured regimes: its form, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import DataError
from forebay.mixture.advice.regimes import (
    TABLE,
    MeasuredVariant,
    difference_of,
    measured_regimes,
    read_table,
)


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found


def written(folder: Path, value: dict[str, Any]) -> Path:
    path = folder / "regimes.json"
    path.write_text(json.dumps(value))
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "regimes.json"
    path.write_text(measured_regimes().model_dump_json(indent=1))
    assert read_table(path) == measured_regimes()


@pytest.mark.parametrize(
    ("key", "value"), [("completeness", 1.5), ("seeds", 0), ("variants", []), ("aucs", 1)]
)
def test_another_form_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(DataError, match=r"regimes\.json is not a table of measured regimes"):
        read_table(tmp_path / "regimes.json")
    wrong = document()
    wrong["regimes"][0][key] = value
    with pytest.raises(DataError, match=key):
        read_table(written(tmp_path, wrong))


def test_a_variant_is_measured_once_over_all_seeds(tmp_path: Path) -> None:
    wrong = document()
    first = wrong["regimes"][0]
    first["variants"].append(first["variants"][0])
    with pytest.raises(DataError, match="names one variant twice"):
        read_table(written(tmp_path, wrong))
    del first["variants"][-1]
    first["variants"][0]["auc_by_seed"] = [0.7]
    name, seeds = first["variants"][0]["variant"], first["seeds"]
    with pytest.raises(DataError, match=f"'{first['name']}', {name}: 1 seeds, not {seeds}"):
        read_table(written(tmp_path, wrong))


def test_all_regimes_measure_the_same_variants(tmp_path: Path) -> None:
    wrong = document()
    last = wrong["regimes"][-1]
    last["variants"].pop()
    with pytest.raises(DataError, match=f"'{last['name']}' measured other variants"):
        read_table(written(tmp_path, wrong))


def variant(*aucs: float) -> MeasuredVariant:
    return MeasuredVariant(variant="stream", auc=sum(aucs) / len(aucs), auc_by_seed=aucs)


def test_differences_are_paired_by_seed() -> None:
    mean, half = difference_of(variant(0.71, 0.72, 0.73), variant(0.70, 0.70, 0.70))
    assert (mean, half) == (pytest.approx(0.02), pytest.approx(4.3027 * 0.01 / 3**0.5))
    assert difference_of(variant(0.7, 0.7), variant(0.6, 0.6))[1] is None
    one = MeasuredVariant(variant="mixed", auc=0.6)
    assert difference_of(variant(0.7, 0.7, 0.7), one) == (pytest.approx(0.1), None)
