"""`python -m support.odd_inputs --seed 7 --examples 300`; --only N repeats one of these."""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.odd_inputs.cases import Case
from support.odd_inputs.declarations import declaration_case
from support.odd_inputs.files import iceberg_case, log_case, parquet_case
from support.odd_inputs.judge import Verdict, judged_declaration, judged_files
from support.odd_inputs.messages import message_problems
from support.odd_inputs.twists import twisted

_Make = Callable[[random.Random, Path], Case]
_MAKES: dict[str, _Make] = {
    "parquet": parquet_case,
    "log": log_case,
    "iceberg": iceberg_case,
    "declaration": declaration_case,
}
# How many of a hundred examples are of each sort.
_SHARES = {"parquet": 22, "log": 33, "iceberg": 3, "declaration": 20, "messages": 22}

_TWISTED = 0.2  # of all projects with files
_WRONG_MAX = 20
_HANGS_SECONDS = 180
_READ_SHARE, _JUDGED_FROM = 0.3, 100  # of so many examples or more


def one(seed: int, number: int, *, loud: bool) -> tuple[str, str, Verdict]:
    """An example: its sort, what it is, and what was wrong. loud: its folder is kept, too."""
    chance = random.Random(f"{seed}.{number}")
    sort = chance.choices(list(_SHARES), list(_SHARES.values()))[0]
    if sort == "messages":
        what, is_read, problems = message_problems(chance)
        return sort, what, Verdict(is_read and not problems, problems, [])
    place = Path(tempfile.mkdtemp(prefix="case-"))
    root = place / "a" / "b" / "c"  # what `..` leads to is its own too
    root.mkdir(parents=True)
    try:
        case = _MAKES[sort](chance, root)
        if sort != "declaration" and chance.random() < _TWISTED:
            twisted(chance, case)
        try:
            verdict = (
                judged_declaration(case) if sort == "declaration" else judged_files(case, chance)
            )
        except Exception:  # noqa: BLE001 - the seed is what counts, and the other examples
            verdict = Verdict(False, [traceback.format_exc()], [])
    finally:
        if not loud:
            shutil.rmtree(place)
    if loud:
        for said in verdict.said:
            print(f"$ {said.command}   -> {said.code}\n{said.out[:3000]}{said.err[:3000]}")
    return sort, f"{case.what} {case.fault}".strip(), verdict


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU at most")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most")
    parser.add_argument("--only", type=int, help="this example, loudly; its folder is kept")
    asked, began = parser.parse_args(), time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    numbers = range(asked.examples) if asked.only is None else [asked.only]
    tried, read, wrong = Counter[str](), Counter[str](), 0
    for number in numbers:
        # What hangs is named: the last of these numbers, and where it stands.
        print(f"--only {number}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=True)
        sort, what, verdict = one(asked.seed, number, loud=asked.only is not None)
        tried[sort] += 1
        read[sort] += verdict.is_read
        if verdict.problems:
            wrong += 1
            print(f"--seed {asked.seed} --only {number}: {sort}: {what}")
            for problem in verdict.problems:
                print(f"    {problem}", flush=True)
        if (
            wrong == _WRONG_MAX
            or _cpu_seconds() > asked.seconds
            or time.monotonic() - began > asked.minutes * 60
        ):
            break
    total = sum(tried.values())
    counts = ", ".join(f"{sort} {read[sort]} of {tried[sort]}" for sort in tried)
    print(f"{total} examples, {_cpu_seconds():.0f} CPU-s; read as others read them: {counts}")
    is_enough = total < _JUDGED_FROM or sum(read.values()) >= _READ_SHARE * total
    return 0 if is_enough and not wrong else 1


def _cpu_seconds() -> float:
    mine = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in mine)


if __name__ == "__main__":
    sys.exit(main())
