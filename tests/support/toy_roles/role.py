"""A role whose behaviour is given by a word in the file that $FOREBAY_TOY_PLAN names.

The plan is JSON: process name -> list of words, one per start of that process, the last one for
all later starts. Words: `serve`, `deaf` (serves, ignores SIGTERM), `child` (serves with a child
in a session of its own), `hang` (lives, and gets on no more), `slow` (gets on, slowly), `exit N`,
`raise NAME TEXT`, `wait FILE` (ends well once FILE is there), `grow` (takes ever more memory),
`spin` (uses all CPU that it gets).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import forebay.errors
from forebay.executors.link.local import LocalLink
from forebay.executors.role import role_exit, start_role
from forebay.system.liveness import Activity, doing, progressed, waiting


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--attempt", type=int, required=True)
    given, _ = parser.parse_known_args()
    role, _, number = Path(os.environ["TMPDIR"]).name.rpartition("-")
    index = int(number)
    link = LocalLink(given.job, role, index)
    start_role(link)
    with role_exit(link):
        act(next_word(f"{role}-{index}", given.job, given.attempt))


def next_word(name: str, job_dir: Path, attempt: int) -> str:
    words = json.loads(Path(os.environ["FOREBAY_TOY_PLAN"]).read_text()).get(name, ["serve"])
    starts = job_dir / f"toy-{name}.starts"
    with starts.open("a") as stream:
        stream.write(f"{os.getpid()} {sys.prefix} {attempt}\n")
    return str(words[min(len(starts.read_text().splitlines()), len(words)) - 1])


def act(word: str) -> None:
    verb, _, rest = word.partition(" ")
    if verb == "exit":
        sys.exit(int(rest))
    if verb == "raise":
        kind, _, text = rest.partition(" ")
        raise getattr(forebay.errors, kind)(text)
    if verb == "wait":
        while not Path(rest).exists():
            time.sleep(0.01)
        return
    if verb == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if verb == "child":
        subprocess.Popen(["sleep", "300"], start_new_session=True, env={})
    print("serving", flush=True)
    use_up(verb)
    if verb == "hang":
        threading.Thread(target=beat_on, daemon=True).start()
        os.read(os.pipe()[0], 1)  # in the kernel, for ever
    while verb == "slow":
        with doing("a slow step"):
            time.sleep(4)
    with waiting():
        time.sleep(300)


def use_up(verb: str) -> None:
    taken = []
    while verb in {"grow", "spin"}:
        progressed()
        if verb == "grow":
            taken.append(bytes(range(256)) * 4096)


def beat_on() -> None:
    """A thread that lives shows nothing."""
    with Activity("beats"):
        while True:
            progressed()
            time.sleep(0.1)


if __name__ == "__main__":
    main()
