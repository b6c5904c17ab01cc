"""What a judgement or a summary says of one of several labels."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def label_part(judgement: Json, label: str) -> Json:
    """What is said of one label of a window: metrics, completeness and event scores.

    label: "" is the only one, or the first; nothing is said of one that was not learnt then.
    """
    return judgement if not label else dict(judgement.get("labels", {}).get(label, {}))
