"""What a judgement or a summary says about one of several labels."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def label_part(judgement: Json, label: str) -> Json:
    """The part about one label of a window: metrics, completeness and event scores.

    label: "" is the only one, or the first; empty for a label that was not trained on then.
    """
    return judgement if not label else dict(judgement.get("labels", {}).get(label, {}))
