"""One thread reads the database of a home for all triggers of this process that wait for it.

It reads twice a second, however many triggers there are, and never in an event loop: a database
that does not respond blocks only this thread. A trigger is notified only of what is new to it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import Connection

from forebay.errors import ForebayError, InfrastructureError, UsageError
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.operators.triggers.base import WakingTrigger
from forebay.system.output.redaction import redacted

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
LOOK_SECONDS = 0.5
# If many triggers are notified together, their loop can do other things in between.
_BETWEEN_NEWS_SECONDS = 0.001
# Clocks may be changed during a sleep, so the deadline is checked now and then.
_DEADLINE_LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class News:
    """What a trigger is notified of: a line for its log, an event to fire, or its own failure."""

    line: str = ""
    is_warning: bool = False
    event: dict[str, Any] | None = None
    error: Exception | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class PolledTrigger(WakingTrigger, Generic[Key, Found]):
    """Waits for rows of a home. Fires what `judge` finds, or `at_deadline`.

    It waits for a database that is unavailable. If something else cannot be read, the task is
    woken: it then checks itself, and fails with the reason.
    """

    at_deadline: ClassVar[str]

    home: str
    deadline: float

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is read, as named in messages."""

    @property
    @abstractmethod
    def key(self) -> Key:
        """What is read from the home: one of the keys of `read_all`."""

    @classmethod
    @abstractmethod
    def read_all(
        cls, connection: Connection, home: Home, keys: Collection[Key]
    ) -> Mapping[Key, Found]:
        """Read for all triggers of the class together; keys that are not found are left out."""

    @abstractmethod
    def judge(self, found: Found) -> News | None:
        """What is new in what was read, if anything. Called in the polling thread."""

    async def watch(self) -> dict[str, Any]:
        with poll_of(self.home).watched(self) as watch:
            while (left := self.deadline - time.time()) > 0:
                news = await watch.next(min(left, _DEADLINE_LOOK_SECONDS))
                if news is None:
                    continue
                if news.error is not None:
                    raise news.error
                if news.line:
                    say = self.log.warning if news.is_warning else self.log.info
                    say("%s", redacted(news.line))
                if news.event is not None:
                    return news.event
        return {"state": self.at_deadline}


class Watch:
    """One waiting trigger, made in its event loop. It is notified of one thing at a time."""

    def __init__(self, trigger: PolledTrigger[Any, Any]) -> None:
        self.trigger = trigger
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        self._news: News | None = None
        self._is_away = False

    @property
    def is_open(self) -> bool:
        return not self._loop.is_closed()

    async def next(self, seconds: float) -> News | None:
        """The news that arrives within that many seconds, if any."""
        with suppress(TimeoutError):
            # Not `wait_for`: on Python 3.11 it forgets a cancel that comes together with news.
            async with asyncio.timeout(seconds):
                await self._told.wait()
        self._told.clear()
        news, self._news = self._news, None
        return news

    def look(self, found: Mapping[Any, Any] | Exception) -> bool:
        """Pass on what is new in what was read, if anything. Called in the polling thread."""
        if self._news is not None:
            return False  # the loop is busy; the next read comes soon
        news = self._judged(found)
        if news is None:
            return False
        self._news = news
        with suppress(RuntimeError):  # the loop was closed just now
            self._loop.call_soon_threadsafe(self._told.set)
        return True

    def _judged(self, found: Mapping[Any, Any] | Exception) -> News | None:
        try:
            if isinstance(found, Exception):
                raise found
            if self._is_away:
                self._is_away = False
                return News(f"{self.trigger.subject} can be read again")
            key = (type(self.trigger), self.trigger.key)
            if key not in found:
                raise UsageError(f"it does not exist in {self.trigger.home}")
            return self.trigger.judge(found[key])
        except InfrastructureError as error:
            if self._is_away:
                return None
            self._is_away = True
            line = f"{self.trigger.subject} cannot be read at the moment, waiting: {error}"
            return News(line, is_warning=True)
        except (ForebayError, OSError) as error:
            line = f"{self.trigger.subject} cannot be read: {error}"
            return News(line, is_warning=True, event={"state": "unreadable"})
        except Exception as error:  # noqa: BLE001 - the trigger raises it in its own task
            return News(error=error)


class Poll:
    """The polling thread of one home. It runs as long as there are triggers to notify."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._changing = threading.Lock()
        self._watches: set[Watch] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watched(self, trigger: PolledTrigger[Any, Any]) -> Iterator[Watch]:
        """Read for this trigger while inside the block."""
        watch = Watch(trigger)
        with self._changing:
            self._watches.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="forebay-poll", daemon=True)
                self._thread.start()
        try:
            yield watch
        finally:
            with self._changing:
                self._watches.discard(watch)

    def _run(self) -> None:
        while watches := self._current():
            found: Mapping[Any, Any] | Exception
            try:
                found = self._read([watch.trigger for watch in watches])
            except Exception as error:  # noqa: BLE001 - each trigger is told
                found = error
            for watch in watches:
                if watch.look(found):
                    time.sleep(_BETWEEN_NEWS_SECONDS)
            time.sleep(LOOK_SECONDS)

    def _current(self) -> list[Watch]:
        with self._changing:
            self._watches = {watch for watch in self._watches if watch.is_open}
            if not self._watches:
                self._thread = None
            return list(self._watches)

    def _read(self, triggers: Collection[PolledTrigger[Any, Any]]) -> dict[tuple[type, Any], Any]:
        """What all triggers wait for, by class and key."""
        keys: dict[type[PolledTrigger[Any, Any]], set[Any]] = {}
        for trigger in triggers:
            keys.setdefault(type(trigger), set()).add(trigger.key)

        def work(rows: Connection) -> dict[tuple[type, Any], Any]:
            return {
                (kind, key): found
                for kind, wanted in keys.items()
                for key, found in kind.read_all(rows, self._home, wanted).items()
            }

        return database_of(self._home).read(work, patient=False)


@cache
def poll_of(home: str) -> Poll:
    return Poll(Home(Path(home)))


# A forked child does not have the parent's threads.
os.register_at_fork(after_in_child=poll_of.cache_clear)
