"""What a judgement says about a window's event scores, in words. Light: it reads only JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def event_answers(judgement: Json) -> dict[str, Any]:
    """Figures by variant or tower.

    For labels after the first, the keys are such as `sale:mixture`.
    """
    found = dict((judgement.get("event") or {}).get("answers", {}))
    for label, part in (judgement.get("labels") or {}).items():
        found |= {f"{label}:{name}": each for name, each in event_answers(part).items()}
    return found


def all_metrics(judgement: Json) -> dict[str, Any]:
    """Figures of scores at publication, with keys as in `event_answers`."""
    found = dict(judgement.get("metrics") or {})
    for label, part in (judgement.get("labels") or {}).items():
        found |= {f"{label}:{name}": each for name, each in all_metrics(part).items()}
    return found


def event_words(judgement: Json) -> Iterator[str]:
    """A sentence for each variant: its AUC, or how much of it is judged so far."""
    for name, figures in event_answers(judgement).items():
        if "/" in name:
            continue  # a tower that does not answer
        if figures["words"]:
            yield f"{name} {figures['words']}"
        else:
            yield f"{name} {figures['auc']:.3f}, {figures['rows']:,} rows judged"
