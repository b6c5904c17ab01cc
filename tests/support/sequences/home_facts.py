"""What a home contains, as plain values: borders, plans, links, dead letters, faults."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.dead_letters import gathered_letters
from forebay.home.database.open import database_of
from forebay.home.database.tables import borders, plans
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store.open import store_of
from support.sequences.declared import PIPELINE

LINES = ("main", "b")
Facts = dict[str, Any]


def facts_of(home: Home) -> Facts:
    database = database_of(home)
    database.prepare()
    return database.read(_rows) | {
        "lines": {line: _line(home, line) for line in LINES},
        "faults": [str(fault) for fault in HomeCheck(home).faults()],
    }


def _rows(rows: Connection) -> Facts:
    found = rows.execute(select(borders.c.partition, borders.c.instant, borders.c.offset))
    documents = rows.scalars(select(plans.c.document))
    return {
        "borders": [list(each) for each in found],
        "plans": [
            WindowPlan.of_document(each, "a plan").model_dump(mode="json") for each in documents
        ],
    }


def _line(home: Home, line: str) -> Facts:
    chain, ledger = ModelChain(home, PIPELINE, line), Ledger(home, PIPELINE, line)
    links = chain.links()
    planned = {window: ledger.latest_plan(window) for window in ledger.windows()}
    order = chain.windows()
    newest = chain.newest_of(order)
    return {
        "order": order,
        "newest": {window: link.generation for window, link in newest.items()},
        "links": [_link(chain, link) for link in links],
        "planned": {window: plan.generation for window, plan in planned.items() if plan},
        "done": {window: ledger.trained(window) for window in planned},
    }


def _link(chain: ModelChain, link: Link) -> Facts:
    stored = link.files.get("dead_letters")
    letters = [] if stored is None else gathered_letters(store_of(chain.home).tree(stored))
    return {
        **link.model_dump(mode="json", exclude={"files"}),
        "trained": {name: link.trained(name).model_dump() for name in link.seen},
        "letters": [[each.source, each.location] for each in letters],
    }
