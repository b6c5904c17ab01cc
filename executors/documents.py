"""Documents in database columns, and how `forebay home check` reads each of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import ValidationError
from sqlalchemy import Column

from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobStatus
from forebay.home.database.tables import events, jobs, judgements, listings, plans
from forebay.home.home_check import FindProblem
from forebay.system.message import Message


def _is_message(kind: type[Message]) -> FindProblem:
    def problem(text: str) -> str:
        try:
            kind.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            return f"{where}: {first['msg']}" if where else first["msg"]
        return ""

    return problem


def _is_object(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError as error:
        return f"Invalid JSON: {error}"
    return "" if isinstance(found, dict) else "a JSON object is expected"


DOCUMENTS: Mapping[Column[str], FindProblem] = {
    plans.c.document: _is_message(WindowPlan),
    listings.c.document: _is_message(ListingHead),
    jobs.c.document: _is_message(JobStatus),
    jobs.c.progress: _is_message(Progress),
    judgements.c.document: _is_object,
    events.c.facts: _is_object,
}
