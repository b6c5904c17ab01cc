"""A small summary of a run, as `forebay run … --summary FILE` writes it."""

from __future__ import annotations

from typing import Any

from forebay.executors.evaluation.run_summary import Summary

facts_of = Summary.model_validate
PARADIGMS = ("mixture", "stream", "mixed")


def estimate(value: float, reach: float = 0.03) -> dict[str, float]:
    return {"value": value, "low": value - reach, "high": value + reach}


def source(feed: str, rows: int, dead: int, reason: str = "") -> dict[str, Any]:
    return {
        "feed": feed,
        "planned_rows": rows + dead,
        "served_rows": rows + dead,
        "trained_rows": rows,
        "dead_letter_rows": dead,
        "reason": reason,
    }


def series(steps: int = 14) -> dict[str, Any]:
    done = [(number + 1) / steps for number in range(steps)]
    rows = {"flights_table": 600, "flights_files": 300, "departures": 900}
    return {
        "steps": list(range(1, steps + 1)),
        "seconds": [0.1 * number for number in range(steps)],
        "lag_seconds": [int(86_400 * (1 - part)) for part in done],
        "rows": {name: [int(total * part) for part in done] for name, total in rows.items()},
        "losses": {
            "mixture batch": [0.7 - 0.2 * part for part in done],
            "mixture stream": [None, *(0.69 - 0.1 * part for part in done[1:])],
        },
    }


def event(*, judged: int = 900, complete: bool = True) -> dict[str, Any]:
    words = "" if complete else f"0.660 so far, {judged} of 919 rows judged"
    answers = {
        name: {"auc": 0.66, "auc_interval": [0.63, 0.69], "rows": judged, "words": words}
        for name in (*PARADIGMS, "mixture/memory")
    }
    return {"rows": 919, "judged": judged, "complete": complete, "answers": answers}


def pooled_event() -> dict[str, Any]:
    return {
        "windows": 2,
        "judged": 1800,
        "answers": {
            name: {
                "auc": estimate(0.66),
                "normalised_entropy": estimate(0.94, 0.01),
                "calibration": 1.02,
                "curve": [
                    {"expected": 0.05, "observed": estimate(0.06, 0.02), "rows": 900},
                    {"expected": 0.30, "observed": estimate(0.28, 0.05), "rows": 900},
                ],
            }
            for name in (*PARADIGMS, "mixture/memory")
        },
        "sources": {"flights_table": part(1488, 300, 0.66), "flights_files": part(312, 0, None)},
        "slices": {"carrier": {"<AA>": part(500, 90, 0.64), "all others": part(1300, 210, 0.67)}},
    }


def part(rows: int, positives: int, auc: float | None) -> dict[str, Any]:
    """Pooled figures of one source or slice; of one class there are none."""
    words = "" if auc else f"one class: {positives} positives of {rows} rows"
    figures = {"auc": auc and estimate(auc), "rows": rows, "positives": positives, "words": words}
    return dict.fromkeys((*PARADIGMS, "mixture/memory"), figures)


def window(key: str, *, auc_fresh: float | None = 0.66) -> dict[str, Any]:
    return {
        "window": key,
        "generation": 1,
        "sources": {
            "flights_table": source("batch", 600, 2),
            "flights_files": source("batch", 300, 1),
            "departures": source("stream", 900, 4),
        },
        "metrics": {
            name: {
                "auc_true": 0.67,
                "auc_true_interval": [0.64, 0.70],
                "auc_fresh": auc_fresh,
                "auc_fresh_interval": auc_fresh and [auc_fresh - 0.03, auc_fresh + 0.03],
                "log_loss": 0.5,
                "rows": 900,
            }
            for name in PARADIGMS
        },
        "event": event(),
        "label_completeness": {"fresh_positives": 31, "complete_positives": 100, "share": 0.31},
        "series": series(),
    }


def summary() -> dict[str, Any]:
    warm_start = window("2013-01-01_2013-06-01")
    warm_start["metrics"] = {}
    warm_start["label_completeness"] = None
    warm_start["sources"]["flights_table"] = source("batch", 0, 0, "before start")
    return {
        "pipeline": "flights",
        "line": "main",
        "paradigms": list(PARADIGMS),
        "windows": [window("2013-06-01"), window("2013-06-02", auc_fresh=None)],
        "warm_start": warm_start,
        "seen": {"flights_table": {"rows": 1200, "sum": 5, "sum_of_squares": 7}},
        "model": "/models/<flights>/saved_model",
        "published": {
            "window": "2013-06-02",
            "generation": 1,
            "integer": 1,
            "pinned": False,
            "path": "/models/<flights>/saved_model",
            "published_at": "2013-06-03T00:07:19.596917Z",
        },
        "pooled": {
            "paradigms": {
                name: {"auc_true": estimate(0.68, 0.005), "auc_fresh": None} for name in PARADIGMS
            },
            "event": pooled_event(),
            "label_ages": [
                {"until_seconds": 900, "fresh_positives": 1, "complete_positives": 100},
                {"until_seconds": 3600, "fresh_positives": 318, "complete_positives": 900},
                {"until_seconds": None, "fresh_positives": 10, "complete_positives": 10},
            ],
            "label": "complete",
            "label_completeness": {
                "fresh_positives": 319,
                "complete_positives": 1000,
                "share": 0.319,
            },
            "differences": [
                {
                    "a": "mixture",
                    "b": "mixed",
                    "differ": False,
                    "value": 0.0004,
                    "low": -0.0021,
                    "high": 0.0029,
                    "words": "mixture and mixed do not differ (difference 0.0004, "
                    "95% interval -0.0021 to 0.0029)",
                }
            ],
            "warnings": ["mixture is a bad choice here: only 31% of positives are known"],
        },
        "advice": {"words": "31% (28%-34%) of 1,000 positives are known"},
        "rows_agree": True,
        "rows_line": "rows  planned = served = trained + dead; the model's own sums agree",
        "restarts": {"driver": 0, "data": 1},
        "phases_seconds": {"plan": 1.25, "job": 60.5},
        "notes": ["window 2013-06-01 was trained before"],
    }


def two_labels() -> dict[str, Any]:
    """The same with a second label, which some rows of history did not say."""
    found = summary()
    for one in found["windows"]:
        names = ("metrics", "event", "label_completeness")
        one["labels"] = {"sale": {name: one[name] for name in names}}
        learnt = {"click/label_not_known": 3, "sale/label_not_known": 1_234}
        one["sources"]["flights_table"]["learnt_rows"] = learnt
    own = {"pooled": found["pooled"], "advice": found["advice"]}
    return {**found, "first_label": "click", "labels": {"sale": own}}
