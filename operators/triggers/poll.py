"""One thread reads the database of a home for all triggers of this process that wait for it.

Each second it reads once, whatever the number of triggers, and never in an event loop: a database
that does not answer holds up this thread alone. A trigger hears only what is news to it.
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
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.operators.triggers.base import WakingTrigger
from forebay.system.redaction import redacted

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
LOOK_SECONDS = 1.0
# Where many hear something at once, their loop does other things in between.
_BETWEEN_NEWS_SECONDS = 0.001
# Clocks are set while one sleeps: a deadline is looked at now and then.
_DEADLINE_LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class News:
    """What a trigger hears: a line for its log, the event that it fires, or what broke it."""

    line: str = ""
    is_warning: bool = False
    event: dict[str, Any] | None = None
    error: Exception | None = None


class PolledTrigger(WakingTrigger, Generic[Key, Found]):
    """Waits for rows of a home. Fires what `judge` finds, or `at_deadline`.

    A database that is away is waited for. Where something else cannot be read the task is woken: it
    looks itself, and fails with the reason.
    """

    at_deadline: ClassVar[str]

    def __init__(self, *, home: str, deadline: float, not_before: float | None) -> None:
        """`home` is the FOREBAY_HOME, `deadline` as `time.time` counts."""
        super().__init__(not_before=not_before)
        self.home = home
        self.deadline = deadline

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is read, in messages."""

    @property
    @abstractmethod
    def key(self) -> Key:
        """What of the home is read, as an argument of `read_all`."""

    @classmethod
    @abstractmethod
    def read_all(
        cls, connection: Connection, home: Home, keys: Collection[Key]
    ) -> Mapping[Key, Found]:
        """Read for all triggers of the class at once; what is not there is left out."""

    @abstractmethod
    def judge(self, found: Found) -> News | None:
        """What is news in what was read, if anything is. Called in the thread."""

    async def watch(self) -> dict[str, Any]:
        """Wait for an event until the deadline."""
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
    """One trigger that waits, in its event loop. It hears one thing at a time."""

    def __init__(self, trigger: PolledTrigger[Any, Any]) -> None:
        """Made in the event loop."""
        self.trigger = trigger
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        self._news: News | None = None
        self._is_away = False

    @property
    def is_open(self) -> bool:
        """Whether anybody can hear it."""
        return not self._loop.is_closed()

    async def next(self, seconds: float) -> News | None:
        """What comes within that many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._told.wait(), seconds)
        self._told.clear()
        news, self._news = self._news, None
        return news

    def look(self, found: Mapping[Any, Any] | Exception) -> bool:
        """Tell what is new in an answer of the database, if anything is. Called in the thread."""
        if self._news is not None:
            return False  # the loop is busy; the next look comes soon
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
                raise UsageError(f"it is not there, below {self.trigger.home}")
            return self.trigger.judge(found[key])
        except InfrastructureError as error:
            if self._is_away:
                return None
            self._is_away = True
            line = f"{self.trigger.subject} cannot be read now, waiting: {error}"
            return News(line, is_warning=True)
        except (ForebayError, OSError) as error:
            line = f"{self.trigger.subject} cannot be read: {error}"
            return News(line, is_warning=True, event={"state": "unreadable"})
        except Exception as error:  # noqa: BLE001 - the trigger raises it in its own task
            return News(error=error)


class Poll:
    """The thread of one home. It runs as long as somebody watches."""

    def __init__(self, home: Home) -> None:
        """Nothing runs yet."""
        self._home = home
        self._changing = threading.Lock()
        self._watches: set[Watch] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watched(self, trigger: PolledTrigger[Any, Any]) -> Iterator[Watch]:
        """Read for a trigger inside the block."""
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
            except Exception as error:  # noqa: BLE001 - each trigger hears it
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
        """What all of them wait for, by class and key."""
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
    """The one of this process."""
    return Poll(Home(Path(home)))


# Threads stay with the parent.
os.register_at_fork(after_in_child=poll_of.cache_clear)
