"""What a judgement says about a window's scores, in words. Light: it reads only JSON."""

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


def evaluation_words(judgement: Json) -> list[str]:
    """A line for each AUC of each variant, with its rows: that of the first at events comes last.

    At publication it is by complete labels, and as long as more may come, by those known then.
    """
    found = [f"event AUC of {words}" for words in event_words(judgement)]
    for name, each in _answering(all_metrics(judgement)):
        by_complete = each["words_true"]
        if not by_complete and each["auc_true"] is not None:
            by_complete = f"{each['auc_true']:.3f}, {each['joined_rows']:,} rows judged"
        if by_complete:
            found.append(f"AUC of {name} at publication {by_complete}")
        if each["auc_fresh"] is not None and (each["words_true"] or not by_complete):
            figure = f"{each['auc_fresh']:.3f}{' so far' if by_complete else ''}"
            rows = f"{each['rows']:,} rows, by labels as known then"
            found.append(f"AUC of {name} at publication {figure}, {rows}")
    return found[::-1]


def event_words(judgement: Json) -> Iterator[str]:
    """A sentence for each variant: its AUC, or how much of it is judged so far."""
    for name, figures in _answering(event_answers(judgement)):
        if figures["words"]:
            yield f"{name} {figures['words']}"
        else:
            yield f"{name} {figures['auc']:.3f}, {figures['rows']:,} rows judged"


def _answering(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Without towers that do not answer."""
    return ((name, each) for name, each in found.items() if "/" not in name)
