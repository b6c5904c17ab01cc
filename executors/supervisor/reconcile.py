"""What a supervisor has to do next, from what is wanted and what is there alone.

Nothing here knows how a process is started or why one ended: `processes` carries the actions out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forebay.executors.roles.resources import Desired, Resources


@dataclass(frozen=True)
class Seen:
    """A process that runs, or is due at some instant (monotonic seconds); None: it is not wanted.

    is_ready: it has shown a sign of life since it started. asked: the limits that the plane was
    last asked for. is_ending: it was told to end.
    """

    role: str
    index: int
    is_running: bool = False
    due: float | None = None
    is_ready: bool = False
    is_ending: bool = False
    asked: Resources | None = None


@dataclass(frozen=True)
class Start:
    """Start a process, with its limits but for the one of CPU."""

    role: str
    index: int


@dataclass(frozen=True)
class End:
    """End a process that is one too many, and plan it no more."""

    role: str
    index: int


@dataclass(frozen=True)
class Resize:
    """Ask the plane for other limits of a running process."""

    role: str
    index: int
    to: Resources


Action = Start | End | Resize


def newer(now: Desired, found: Desired | None) -> Desired:
    """What is wanted from now on: nobody goes back to an older version."""
    return now if found is None or found.version <= now.version else found


def actions(desired: Desired, seen: Iterable[Seen], now: float) -> list[Action]:
    """At most one for each process, in the order of roles. now: monotonic seconds."""
    there = {(each.role, each.index): each for each in seen}
    wanted = desired.processes
    wanted_keys = set(wanted)
    found = [
        _of_wanted(
            desired.resources[role], there.get((role, index), Seen(role, index, due=now)), now
        )
        for role, index in wanted
    ]
    extra = [
        End(each.role, each.index)
        for key, each in there.items()
        if key not in wanted_keys
        and not each.is_ending
        and (each.is_running or each.due is not None)
    ]
    return [action for action in found if action is not None] + extra


def _of_wanted(wanted: Resources, each: Seen, now: float) -> Action | None:
    if not each.is_running:
        is_due = each.due is not None and each.due <= now
        return Start(each.role, each.index) if is_due else None
    limits = wanted if each.is_ready else wanted.without_cpu
    if each.is_ending or each.asked == limits:
        return None
    return Resize(each.role, each.index, limits)
