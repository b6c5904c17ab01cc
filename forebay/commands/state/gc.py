"""`forebay gc`: remove files of older windows, and files that nothing refers to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, note, option
from forebay.errors import UsageError
from forebay.home.database.format import require_format
from forebay.home.database.identity import read_marker
from forebay.home.database.open import database_of
from forebay.home.database.reserve import reserve_freed
from forebay.home.paths import Home
from forebay.home.privacy import require_folder
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.executors.retention.home_garbage import Found

COLUMNS = ("kind", "pipeline", "line", "window", "generation", "size_bytes", "place")


def gc(
    dry_run: Annotated[bool, option("--dry-run", help="Only show what would be removed.")] = False,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Remove what is no longer kept.

    Removes files of older windows, files that nothing refers to, and leftovers of killed writers.

    A pipeline's YAML says how many windows keep what: job.windows_kept, job.checkpoint.windows_kept
    and job.publish.windows_kept. gc may run at any time, alongside runs and jobs: it never removes
    what they need or are storing. It also brings up serving paths that a killed process left.
    """
    from forebay.config.load import load_project
    from forebay.executors.retention.home_garbage import find_garbage, remove_garbage
    from forebay.executors.serving.serving_path import bring_up_all

    act = find_garbage if dry_run else remove_garbage
    home, project = Home.from_environment(), load_project(config)
    require_folder(home)
    with reserve_freed(home.root):
        require_format(home)
        if read_marker(home) is None:
            raise UsageError(
                f"{home.root} is not a home yet: nothing to remove (set FOREBAY_HOME to the "
                "folder that you mean)"
            )
        with working("looking for what is no longer kept"):
            found = act(home, project)
        database_of(home).close()  # what it shares with other processes takes room
    for text in found.notes:
        note(f"note: {text}")
    shown = Output(output)
    if shown.is_json:
        shown.json(
            {
                "dry_run": dry_run,
                "windows": [each._asdict() for each in found.windows],
                "names": found.unnamed.names,
                "leftovers": found.unnamed.leftovers,
            }
        )
    else:
        _print(shown, found, dry_run=dry_run)
    if not dry_run:
        bring_up_all(home, project)


def _print(shown: Output, found: Found, *, dry_run: bool) -> None:
    if found.windows:
        shown.table([each._asdict() for each in found.windows], COLUMNS)
    for name in (*found.unnamed.names, *found.unnamed.leftovers):
        shown.line(name)
    does = "would be removed" if dry_run else "removed"
    if not (found.windows or found.unnamed.names or found.unnamed.leftovers):
        shown.line("nothing to remove")
        return
    kinds = Counter(each.kind for each in found.windows)
    if kinds:
        size = sum(each.size_bytes or 0 for each in found.windows)
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        shown.line(f"{does} from older windows: {listed} ({size:,} bytes of the store)")
    shown.line(
        f"{does} from the store: {counted(len(found.unnamed.names), 'unreferenced file')}, "
        f"{counted(len(found.unnamed.leftovers), 'leftover')} of killed writers"
    )
