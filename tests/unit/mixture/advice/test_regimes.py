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


def test_a_table_is_read_again_and_another_form_is_refused_by_name(tmp_path: Path) -> None:
    path, plain = tmp_path / "regimes.json", json.loads(TABLE.read_text())["regimes"]
    with pytest.raises(DataError, match=r"regimes\.json is not a table of measured regimes"):
        read_table(path)
    path.write_text(measured_regimes().model_dump_json(indent=1))
    assert read_table(path) == measured_regimes()

    def refused(says: str, **first: Any) -> None:
        path.write_text(
            json.dumps({**json.loads(TABLE.read_text()), "regimes": [plain[0] | first, *plain[1:]]})
        )
        with pytest.raises(DataError, match=says):
            read_table(path)

    for key, value in {"completeness": 1.5, "seeds": 0, "variants": [], "aucs": 1}.items():
        refused(key, **{key: value})
    one, *others = plain[0]["variants"]
    refused("names one variant twice", variants=[one, one, *others])
    says = f"'{plain[0]['name']}', {one['variant']}: 1 seeds, not {plain[0]['seeds']}"
    refused(says, variants=[one | {"auc_by_seed": [0.7]}, *others])
    refused(f"'{plain[1]['name']}' measured other variants", variants=[one, *others[1:]])


def variant(*aucs: float) -> MeasuredVariant:
    return MeasuredVariant(variant="stream", auc=sum(aucs) / len(aucs), auc_by_seed=aucs)


def test_differences_are_paired_by_seed() -> None:
    mean, half = difference_of(variant(0.71, 0.72, 0.73), variant(0.70, 0.70, 0.70))
    assert (mean, half) == (pytest.approx(0.02), pytest.approx(4.3027 * 0.01 / 3**0.5))
    assert difference_of(variant(0.7, 0.7), variant(0.6, 0.6))[1] is None
    one = MeasuredVariant(variant="mixed", auc=0.6)
    assert difference_of(variant(0.7, 0.7, 0.7), one) == (pytest.approx(0.1), None)
