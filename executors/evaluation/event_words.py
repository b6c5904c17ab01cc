"""What a judgement says of a window's event scores, in words. Light: it reads JSON alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def event_answers(judgement: Json) -> dict[str, Any]:
    """Figures by variant or tower; none in judgements of earlier versions."""
    return dict((judgement.get("event") or {}).get("answers", {}))


def event_words(judgement: Json) -> Iterator[str]:
    """A sentence for each answer: its AUC, or how much of it is judged so far."""
    for name, figures in event_answers(judgement).items():
        if figures["words"]:
            yield f"{name} {figures['words']}"
        else:
            yield f"{name} {figures['auc']:.3f}, {figures['rows']:,} rows judged"
