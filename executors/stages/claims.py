"""Claims of a window: which generation was decided for each claim that a caller passed.

A claim stands for one request of one run. The first call with it decides the generation, and every
later one gets the same, so that a request that is repeated after a crash is trained once. Claims
are forgotten with their window, and those of a run when its plan is recorded: a scheduler may
delete a run and create another one of the same name, which is a new request.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from forebay.datatasks.plans import history, plan_rows
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import DataError
from forebay.home.database.tables import requests
from forebay.system.instants import now_us

CLAIMS_MAX = 64


class Claims:
    def __init__(self, ledger: Ledger, window: str) -> None:
        self._ledger = ledger
        self._window = window

    def generation(self, claim: str) -> int | None:
        return self._ledger.database.read(lambda rows: self._decided(rows, claim))

    def drop_run(self, run: str) -> None:
        """Forget what was decided for claims of a run, which begin with its name and a slash."""

        def work(rows: Connection) -> None:
            of_window = plan_rows.window_id(rows, self._ledger.pipeline, self._window)
            of_run = requests.c.tag.startswith(self._tag(f"{run}/"), autoescape=True)
            rows.execute(delete(requests).where(requests.c.window_id == of_window, of_run))

        self._ledger.database.transact(work)

    def decide(self, claim: str, *, renewed: int | None) -> int:
        """The generation of a claim: the newest plan's, unless it has one already.

        renewed: a generation that will not do, since it is trained already; if it is the newest,
            what the sink proposed in its place is taken, or else its tasks are copied to a new one.
            None where any will do.

        Raises:
            DataError: when the window has no plan.
        """

        def work(rows: Connection) -> int:
            decided = self._decided(rows, claim)
            if decided is not None:
                return decided
            newest = self._newest(rows)
            if newest == renewed:
                names = self._ledger.pipeline, self._ledger.line, self._window
                newest = plan_rows.proposed_generation(rows, *names) or self._renew(rows)
            self._store(rows, claim, newest)
            return newest

        return self._ledger.database.transact(work)

    def _decided(self, rows: Connection, claim: str) -> int | None:
        of_window = plan_rows.window_id(rows, self._ledger.pipeline, self._window)
        return rows.scalar(
            select(requests.c.generation).where(
                requests.c.window_id == of_window, requests.c.tag == self._tag(claim)
            )
        )

    def _newest(self, rows: Connection) -> int:
        ledger = self._ledger
        found = plan_rows.plan_for(rows, ledger.pipeline, ledger.line, self._window)
        if found is None:
            raise DataError(
                f"window {self._window} has no plan: it was forgotten (clear the whole run, which "
                "plans it again)"
            )
        return found.generation

    def _renew(self, rows: Connection) -> int:
        ledger = self._ledger
        plan = plan_rows.copy_plan(rows, ledger.pipeline, ledger.line, self._window)
        facts = {"generation": plan.generation, "fingerprint": plan.fingerprint}
        history.note(rows, ledger.pipeline, self._window, "planned", facts)
        return plan.generation

    def _store(self, rows: Connection, claim: str, generation: int) -> None:
        """Store a decision; the oldest are dropped where there would be more than CLAIMS_MAX."""
        of_window = plan_rows.window_id(rows, self._ledger.pipeline, self._window)
        mine = select(requests.c.id).where(requests.c.window_id == of_window)
        newest = mine.order_by(requests.c.id.desc()).limit(CLAIMS_MAX - 1)
        kept = list(rows.scalars(newest))
        rows.execute(
            delete(requests).where(requests.c.window_id == of_window, requests.c.id.not_in(kept))
        )
        values = {"window_id": of_window, "tag": self._tag(claim), "generation": generation}
        rows.execute(insert(requests).values(decided_at=now_us(), **values))

    def _tag(self, claim: str) -> str:
        """With the line: two DAGs that train two lines may have runs of the same name."""
        return f"{self._ledger.line}:{claim}"
