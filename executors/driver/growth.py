"""Lets the open window of the session grow: one thread, which plans, stores and hands over."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.manifests import tables_of
from forebay.errors import FencedError, InfrastructureError, NotReadyError
from forebay.executors.driver.service import DriverService
from forebay.executors.driver.window import ServedWindow
from forebay.executors.job.handle import GONE_SECONDS
from forebay.system.liveness import Activity, progressed
from forebay.system.output.error_report import ErrorReport

if TYPE_CHECKING:
    from forebay.datatasks.planning.growth import WindowGrowth
    from forebay.datatasks.plans.plan import WindowPlan

_POLL_SECONDS = 0.25
# After an error of a storage, which may be away for a while: the window waits for it.
_RETRY_SECONDS = 2.0
# An attempt that ends earlier goes on with the trouble of the one before it.
_BRIEF_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


class Grower:
    def __init__(
        self,
        service: DriverService,
        ledger: Ledger,
        growth_of: Callable[[WindowPlan], WindowGrowth],
    ) -> None:
        self._service, self._ledger, self._growth_of = service, ledger, growth_of
        self._thread = threading.Thread(target=self._run, name="growth", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        away_at = 0.0
        while (served := self._service.growing()) is not None:
            began = time.monotonic()
            try:
                with Activity("planning slices"):
                    self._grow_on(served)
                away_at = 0.0
            except InfrastructureError as error:  # of the database: from what is stored there
                now = time.monotonic()
                away_at = away_at if away_at and now - began < _BRIEF_SECONDS else now
                if now - away_at > GONE_SECONDS:
                    self._service.refuse(served, ErrorReport.of(error))
                    away_at = 0.0
                _LOG.warning("window %s waits: %s", served.window, error)
                self._service.pause(_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 - else the trainer would wait for ever
                _LOG.warning("window %s cannot grow", served.window, exc_info=error)
                self._service.refuse(served, ErrorReport.of(error))

    def _grow_on(self, served: ServedWindow) -> None:
        """Until the window is closed, or another session is open."""
        growth = self._begun(served)
        try:
            is_closed = self._close_in_time(served, growth)
        finally:
            growth.release()
        if is_closed:
            self._hand_over(served)
            self._service.close(served)

    def _close_in_time(self, served: ServedWindow, growth: WindowGrowth) -> bool:
        """Let it grow until it is closed; False once another session is open."""
        late = dict[str, str]()
        while self._service.release(served, growth.horizon):
            progressed()
            try:
                for row in growth.grow():
                    self._service.grow(served, tables_of([row.tasks]))
                if growth.is_complete:
                    growth.close()
                    return True
                growth.trouble_at = None
            except FencedError:  # an earlier driver was at it
                if not self._ledger.plan(served.window, served.generation).is_open:
                    return True
                growth.restore()
                self._hand_over(served)
            except InfrastructureError as error:
                if growth.is_overdue():
                    raise NotReadyError(
                        f"window {served.window} is over, and cannot be planned to its end: {error}"
                    ) from error
            if growth.late != late:
                late = dict(growth.late)
                self._tell(served.window, late)
            self._service.pause(_RETRY_SECONDS if growth.trouble_at else _POLL_SECONDS)
        return False

    def _tell(self, window: str, late: Mapping[str, str]) -> None:
        """Write down what is waited for, so that `why` can tell."""
        for source, reason in late.items():
            _LOG.info("window %s waits for source %s: %s", window, source, reason)
            self._ledger.note(window, "waiting", source=source, reason=reason)

    def _begun(self, served: ServedWindow) -> WindowGrowth:
        """What goes on after all that is stored, which is handed over."""
        growth = self._growth_of(served.plan)
        self._hand_over(served)
        return growth

    def _hand_over(self, served: ServedWindow) -> None:
        self._service.grow(served, [self._ledger.tasks(served.window, served.generation)])
