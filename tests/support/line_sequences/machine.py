"""One sequence: operations drawn from a seed, and after each what must hold."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from forebay.home.paths import Home
from support.line_sequences.counts import Seen, kind_of
from support.line_sequences.declared import DAYS, Declared
from support.line_sequences.judge import Judge, Told, names_loss
from support.line_sequences.operations import LineOperations
from support.line_sequences.world import World
from support.sequences.declared import CLICKS, DAILY, HISTORY, day, key
from support.sequences.judge import Fault
from support.sequences.operations import Ended, Facts, attempt

T = TypeVar("T")
# What a window that was trained may be called.
_DONE = {"trained", "stale", "data changed", "running"}
# Of one step, until there is something to do an operation to.
DRAWS = 9
# An operation and how often it is done beside the others.
WEIGHTS = {
    "run the next windows": 40,
    "run any windows": 7,
    "reprocess": 9,
    "stages": 6,
    "stages again": 4,
    "stages up to the sink": 3,
    "plan": 6,
    "forget": 6,
    "begin anew": 2,
    "collect": 3,
    "follow why": 8,
    "change": 24,
    "undo": 36,
    "write a late file": 3,
    "move a file": 4,
    "move a file back": 8,
    "mark": 2,
    "append in time": 2,
    "append late": 2,
    "trim": 1,
    "move a partition": 2,
    "move a partition back": 10,
    "empty a partition": 8,
    "add a partition": 3,
    "make the log anew": 1,
    "move the log": 2,
}


class _InVainError(Exception):
    """There is nothing to do an operation to."""


class Life:
    """A project, its home, and everything that is done to them in turn.

    Each operation draws from its own seed, so that one that is left out changes no other's draw.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.root = Path(tempfile.mkdtemp(prefix="line-sequence"))
        random = Random(f"{seed} begins")
        self.declared = Declared(self.root, warm=random.random() < 0.4, stands=seed % 2 == 1)
        self.world = World(self.root, random)
        self.operations = LineOperations(self.declared.project, Home(self.root / ".forebay"))
        self.judge = Judge(self.world, self.declared)
        self.seen = Seen()
        self.facts: Facts = {}
        self.story: list[str] = []
        self.base = self.declared.text
        self.lost = False  # whether data went that has not come back
        self.cut: set[tuple[str, int, int]] = set()  # reprocesses that did not come to their end
        self.number = -1
        self.claims = 0

    def play(self, steps: Iterable[int]) -> None:
        """Do the operations of these numbers, up to the first Fault."""
        try:
            self._look(Ended())
            for self.number in steps:
                random = Random(f"{self.seed} {self.number}")
                names = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=DRAWS)
                any(self._step(name, random) for name in names)
            faults = self.operations.faults()
            if faults:
                raise Fault("home check", str(faults[:3]))
        finally:
            shutil.rmtree(self.root)

    def _step(self, name: str, random: Random) -> bool:
        """Whether there was anything to do it to."""
        try:
            done = getattr(self, f"_{name.replace(' ', '_')}")(random)
        except _InVainError:
            return False
        self.seen.operations[name] += 1
        if "REFUSED" in done:
            self.seen.operations[f"{name}: refused"] += 1
        self.story.append(f"{self.number}: {name}: {done}")
        return True

    # Lines ----------------------------------------------------------------------------------

    def _run_the_next_windows(self, random: Random) -> str:
        line = self._a_line(random)
        first = self._untrained(line)
        count = random.choice([1, 1, 1, 2, 3])
        if not self._days(line):  # perhaps with days that have no rows yet
            first = random.choice([0, self.world.begins, 2])
        if first >= DAYS:
            raise _InVainError
        healthy = self._is_healthy(line)
        self.seen.operations["run a healthy line"] += healthy
        last = min(first + count, DAYS) - 1
        stale = {"on_stale": "train"} if random.random() < 0.5 else {}
        return self._run(line, first, last, healthy=healthy, **stale)

    def _run_any_windows(self, random: Random) -> str:
        first = random.randrange(DAYS)
        return self._run(self._a_line(random), first, min(DAYS - 1, first + random.choice([0, 2])))

    def _run(self, line: str, first: int, last: int, *, healthy: bool = False, **more: Any) -> str:
        text = f"--line {line} --from {key(first)} --to {key(last)}"
        text += "".join(f" --{name.replace('_', '-')} {value}" for name, value in more.items())
        before, settled = self._names(line), _settled(self.facts["lines"][line])
        ended = self._do(line, lambda: self._range(first, last, line, **more))
        if healthy and ended.refusal:
            raise Fault("refused for nothing", f"run {text}: {ended.refusal}")
        again = {window for window, _ in self._names(line) - before} & settled
        if again:
            raise Fault("trained again unasked", f"run {text}: {again}")
        return f"{text}: {_words(ended)}"

    def _range(self, first: int, last: int, line: str, **more: Any) -> Any:
        """Days, or of each range the first hour where windows are hours now."""
        names = key(first), key(last)
        if self.declared.values["pipeline"]["dataset"]["window"] == "1h":
            names = f"{names[0]}T00", f"{names[0]}T00"
        done = self.operations.run(*names, line, **more)
        trained = self.operations.look()["lines"][line]["order"]
        if names[0] not in trained or names[1] not in trained:
            raise Fault("green without a model", f"{line} {names}: {done}")
        return done

    def _reprocess(self, random: Random) -> str:
        line = self._a_line(random)
        trained = self._days(line)
        first = _one_of(random, trained)
        last = min(DAYS - 1, first + random.choice([0, 1, 2, DAYS]))
        green, before = self._green(line, trained), self._names(line)
        ended = self._do(line, lambda: self._range(first, last, line, reprocess=True))
        self._still_green(line, trained, green, ended)
        request, days = (line, first, last), {key(day) for day in range(first, last + 1)}
        new = {window for window, _ in self._names(line) - before}
        by_days = self.declared.values["pipeline"]["dataset"]["window"] == "1d"
        if ended.refusal:
            self.cut.add(request)
        elif by_days and request not in self.cut and not days <= new:
            raise Fault("not read again", f"{request}: only {new}")
        else:
            self.cut.discard(request)
        return f"--line {line} --from {key(first)} --to {key(last)}: {_words(ended)}"

    def _stages(self, random: Random) -> str:
        line = self._a_line(random)
        number = max(0, self._untrained(line) - random.choice([0, 0, 1, 2]))
        if number >= DAYS:
            raise _InVainError
        ended = self._dag(line, number, again=False)
        return f"--line {line} {key(number)}: {_words(ended)}"

    def _stages_again(self, random: Random) -> str:
        line = self._a_line(random)
        trained = self._days(line)
        number = _one_of(random, trained)
        before = self._green(line, trained)
        ended = self._dag(line, number, again=True)
        self._still_green(line, trained, before, ended)
        return f"--line {line} {key(number)}: {_words(ended)}"

    def _stages_up_to_the_sink(self, random: Random) -> str:
        """What the sink records alone is nothing that anything was trained from."""
        line = self._a_line(random)
        number = _one_of(random, self._days(line))
        ended = self._dag(line, number, again=True, submits=False)
        return f"--line {line} {key(number)}: {_words(ended)}"

    def _dag(self, line: str, number: int, **how: bool) -> Ended:
        self.claims += 1
        claim = f"run-{self.claims}"
        return self._do(line, lambda: self.operations.stages(key(number), line, claim, **how))

    def _plan(self, random: Random) -> str:
        first = random.randrange(DAYS)
        last = min(DAYS - 1, first + random.choice([0, 1, DAYS]))
        ended = self._do("", lambda: self.operations.plan(key(first), key(last)))
        return f"{key(first)} to {key(last)}: {_words(ended)}"

    def _forget(self, random: Random) -> str:
        line = self._a_line(random)
        window = _one_of(random, sorted(self.facts["lines"][line]["planned"]))
        ended = self._do(line, lambda: self.operations.forget(window, line))
        return f"--line {line} {window}: {_words(ended)}"

    def _begin_anew(self, random: Random) -> str:
        line = self._a_line(random)
        if not self.facts["lines"][line]["links"]:
            raise _InVainError
        ended = self._do(line, lambda: self.operations.begin_anew(line))
        return f"--line {line}: {_words(ended)}"

    def _collect(self, _random: Random) -> str:
        return _words(self._do("", self.operations.collect))

    def _follow_why(self, random: Random) -> str:
        """Do what it advises: it is not refused, and gives up no row without saying so."""
        line = self._a_line(random)
        window = key(min(DAYS - 1, random.randint(0, self._untrained(line))))
        asked = attempt(lambda: self.operations.why(window, line))
        if asked.refusal:
            return f"--line {line} {window}: {_words(asked)}"
        found = asked.answer
        self.seen.operations[f"why: {found.state}"] += 1
        command, text = found.command, f"{found.reason}; next: {found.next}"
        self._tells_of_changes(line, window, found.state, text)
        if not command.startswith(("forebay run ", "forebay forget ")):
            return f"--line {line} {window}: {found.state}, no command"
        before = self._rows(line)
        ended = self._do(line, lambda: self.operations.follow(command), by_advice=True)
        told = f"--line {line} {window}: {found.state}: {text}: {command}: {_words(ended)}"
        # What nobody has looked at yet, only a look at the data can tell; what is late may come.
        unseen = found.state == "not planned" and ended.code == 3
        unseen &= kind_of(found.reason) != kind_of(ended.refusal)
        unseen |= ended.code == 2
        if ended.refusal and not unseen and not found.next.startswith("change"):
            raise Fault(f"why advises what is refused with exit {ended.code}", told)
        for place, rows in self._rows(line).items():
            if rows < before.get(place, 0) and not names_loss(text):
                raise Fault("why advises a loss", f"{place}: {before[place]} to {rows}; {told}")
        return told

    def _tells_of_changes(self, line: str, window: str, state: str, text: str) -> None:
        generation = self.facts["lines"][line]["newest"].get(window)
        if state != "trained" or generation is None or "changed" in text:
            return
        if self.judge.has_changed(window, generation):
            raise Fault("why keeps silent about changed files", f"{line} {window}: {text}")

    # Declarations ---------------------------------------------------------------------------

    def _change(self, random: Random) -> str:
        if len(self.declared.changes) >= 3:
            raise _InVainError
        done = self.declared.change(random)
        self.seen.changes[done.partition(" = ")[0]] += 1
        return done

    def _undo(self, random: Random) -> str:
        done = self.declared.undo(_one_of(random, range(len(self.declared.changes))))
        self.seen.undone[done] += 1
        return done

    # Data -----------------------------------------------------------------------------------

    def _write_a_late_file(self, random: Random) -> str:
        source, number = random.choice([HISTORY, DAILY]), random.randint(-3, DAYS - 1)
        rows = random.randint(1, 8)
        self.world.files[source].write(number, rows, 30, random.choice([0, 2, 20]))
        return f"{source}, {rows} rows on {key(number)}"

    def _move_a_file(self, random: Random) -> str:
        return self._move_file(random, there=True)

    def _move_a_file_back(self, random: Random) -> str:
        return self._move_file(random, there=False)

    def _move_file(self, random: Random, *, there: bool) -> str:
        source = random.choice([HISTORY, DAILY])
        files = self.world.files[source]
        paths = [path for path, file in sorted(files.by_path.items()) if file.there == there]
        path = _one_of(random, paths)
        day_of = files.by_path[path].day
        moved = [each for each in paths if files.by_path[each].day == day_of]
        moved = moved if random.random() < 0.5 else [path]
        for each in moved:
            files.move(each)
        return f"{source}: {', '.join(moved)}"

    def _mark(self, random: Random) -> str:
        source = random.choice([HISTORY, DAILY])
        self.world.files[source].mark("_SUCCESS")
        return source

    def _append_in_time(self, random: Random) -> str:
        name = self._a_partition(random)
        self.world.clicks.write(name, self.world.clicks.next(name), random.randint(1, 4))
        return name

    def _append_late(self, random: Random) -> str:
        name = self._a_partition(random)
        clicks = self.world.clicks
        clicks.partitions[name].sure = False
        stamp = day(random.randrange(DAYS)) + timedelta(hours=random.randrange(24))
        clicks.write(name, min(stamp, clicks.next(name)), 1)
        return f"{name}, {stamp}"

    def _trim(self, random: Random) -> str:
        name = self._a_partition(random)
        count = random.choice([3, 8, 20])
        if random.random() < 0.7:  # what the line has trained
            reached = self._reached("main", name)
            stored = self.world.clicks.partitions[name].segments
            count = min(count, sum(each.end <= reached for each in stored))
        self.world.clicks.trim(name, count)
        self.world.clicks.touched.add(name)
        self.lost = True
        return f"{name}, now from {self.world.clicks.partitions[name].kept_from}"

    def _move_a_partition(self, random: Random) -> str:
        name = self._a_partition(random, least=2)
        self.world.clicks.move(name)
        return name

    def _move_a_partition_back(self, random: Random) -> str:
        name = _one_of(random, sorted(self.world.clicks.gone))
        self.world.clicks.move(name)
        return name

    def _empty_a_partition(self, random: Random) -> str:
        """One that every line has trained whole; otherwise nobody could say what was in it."""
        name = self._a_partition(random, least=2)
        end = self.world.clicks.partitions[name].end
        begun = [line for line, found in self.facts["lines"].items() if found["order"]]
        if not begun or any(self._reached(line, name) < end for line in begun):
            raise _InVainError
        self.world.clicks.empty(name)
        self.lost = True
        return name

    def _add_a_partition(self, random: Random) -> str:
        clicks = self.world.clicks
        if len(clicks.partitions) >= 3:
            raise _InVainError
        name = str(len(clicks.partitions))
        clicks.write(name, day(random.randrange(DAYS)), random.randint(1, 8))
        return name

    def _make_the_log_anew(self, random: Random) -> str:
        begin = day(random.randrange(2, DAYS))
        self.world.clicks.make_anew(random.choice([4, 16, 60]), begin)
        self.lost = True
        return f"from {begin} on"

    def _move_the_log(self, _random: Random) -> str:
        """Its folder, with its declaration; what was moved once stays there."""
        clicks = self.world.clicks
        if clicks.folder.name != CLICKS or clicks.gone:
            raise _InVainError
        clicks.folder = clicks.folder.rename(clicks.folder.with_name("moved"))
        self.declared.move_log("data/moved")
        clicks.touched |= clicks.partitions.keys()
        return "data/moved"

    # What must hold -------------------------------------------------------------------------

    def _do(self, line: str, work: Callable[[], Any], *, by_advice: bool = False) -> Ended:
        """Do something that may be refused; a refusal leaves what is trained as it was."""
        before = self.facts
        try:
            ended = attempt(work)
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"unexpected {type(error).__name__}", str(error)) from error
        if ended.refusal:
            self.seen.refusals[kind_of(ended.refusal)] += 1
            if ended.code == 4:
                raise Fault("exit 4", ended.refusal)
        self._look(ended)
        for other in before["lines"].keys() - {line}:
            then, now = before["lines"][other], self.facts["lines"][other]
            if now["newest"] != then["newest"] or not _settled(then) <= _settled(now):
                raise Fault("another line is changed", f"{other} by {line}: {_words(ended)}")
        trains = isinstance(ended.answer, dict) and ended.answer.get("state", "trained")
        if not by_advice and (ended.refusal or trains not in {False, "trained"}):
            self._unspoiled(before, ended)
        return ended

    def _look(self, ended: Ended) -> None:
        facts = self.operations.look()
        self.facts = facts
        while self.operations.begun_anew:
            line = self.operations.begun_anew.pop()
            self.judge.begin_anew(line)
            self.cut = {each for each in self.cut if each[0] != line}

        def told(line: str, link: Facts) -> Told:
            found = attempt(lambda: self.operations.why(link["window"], line))
            why = found.refusal or f"{found.answer.reason}; {found.answer.next}"
            answer = ended.answer if isinstance(ended.answer, dict) else {}
            none = "state" in answer or ended.refusal  # a run that fails later prints none
            return Told(link, why, None if none else list(answer.get("notes", ())))

        self.judge.look(facts, told)

    def _unspoiled(self, before: Facts, ended: Ended) -> None:
        """What was trained as it was planned last still is, and `why` says so."""
        for line, now in self.facts["lines"].items():
            then = before["lines"][line]
            for window, generation in then["newest"].items():
                if window not in now["newest"]:
                    if [window] != [*then["newest"]] or "_" not in window:
                        text = f"{line} {window}: {_words(ended)}"
                        raise Fault("a refusal removes what is trained", text)
                    continue  # a warm start that nothing was built on
                if now["newest"][window] != generation or generation != then["planned"].get(window):
                    continue
                if now["planned"].get(window) != generation:
                    text = f"{line} {window} is planned as {now['planned'].get(window)}"
                    raise Fault("a refusal replaces a trained plan", f"{text}: {_words(ended)}")
                if "_" in window:  # `why` answers of the warm start that is declared now
                    continue
                found = attempt(lambda: self.operations.why(window, line))  # noqa: B023
                if not found.refusal and found.answer.state not in _DONE:
                    text = f"{line} {window}: {found.answer.state}: {found.answer.reason}"
                    raise Fault("a refusal changes why", f"{text}: {_words(ended)}")

    def _green(self, line: str, days: Sequence[int]) -> bool:
        planned, newest = (self.facts["lines"][line][each] for each in ("planned", "newest"))
        if any(planned.get(window) != newest[window] for window in newest):
            return False
        ended = self._do(line, lambda: self._range(days[0], days[-1], line))
        return not ended.refusal and not ended.answer["trained_windows"]

    def _still_green(self, line: str, days: Sequence[int], before: bool, ended: Ended) -> None:
        if not before or not ended.refusal:
            return
        again = attempt(lambda: self._range(days[0], days[-1], line))
        if again.refusal or again.answer["trained_windows"]:
            text = again.refusal or f"trains {again.answer['trained_windows']}"
            raise Fault("a refusal spoils a green range", f"{text}; after: {ended.refusal}")

    # What there is --------------------------------------------------------------------------

    def _is_healthy(self, line: str) -> bool:
        clicks, found = self.world.clicks, self.facts["lines"][line]
        whole = all(
            file.there for each in self.world.files.values() for file in each.by_path.values()
        )
        settled = found["planned"].items() >= found["newest"].items() and not found["stale"]
        same = self.declared.text == self.base and not self.declared.changes
        begun = bool(self._days(line)) or not self.world.begins
        unchanged = same and whole and not self.lost and not clicks.gone
        return unchanged and settled and begun and self._unmoved(line)

    def _unmoved(self, line: str) -> bool:
        uses = {use.name: use for use in self.declared.uses()}
        newest = self.facts["lines"][line]["newest"]
        by_same_uses = all(
            {name: part.use for name, part in self.judge.plans[each].items()} == uses
            for each in newest.items()
        )
        warm = self.declared.values["pipeline"]["train"].get("warm_start")
        return by_same_uses and all(  # a window has one time in all lines; a line's own warm start
            self.declared.has(window, self.judge.span(each, window, generation))
            for each, facts in self.facts["lines"].items()
            for window, generation in facts["newest"].items()
            if "_" not in window or (warm and each != line)
        )

    def _a_line(self, random: Random) -> str:
        return random.choice(["main", "main", "main", "b"])

    def _days(self, line: str) -> list[int]:
        order = self.facts["lines"][line]["order"]
        return [number for number in range(DAYS) if key(number) in order]

    def _names(self, line: str) -> set[tuple[str, int]]:
        links = self.facts["lines"][line]["links"]
        return {(link["window"], link["generation"]) for link in links}

    def _untrained(self, line: str) -> int:
        return max(self._days(line), default=-1) + 1

    def _rows(self, line: str) -> dict[tuple[str, str], int]:
        newest = self.facts["lines"][line]["newest"]
        return {
            (window, use): count
            for window, generation in newest.items()
            for use, count in self.judge.trained_rows(line, window, generation).items()
        }

    def _reached(self, line: str, partition: str) -> int:
        found = self.facts["lines"][line]
        if not found["order"]:
            return 0
        window = found["order"][-1]
        lineage = self.judge.lineages[line, window, found["newest"][window]]
        return lineage.reached.get(CLICKS, {}).get(partition, 0)

    def _a_partition(self, random: Random, least: int = 1) -> str:
        clicks = self.world.clicks
        names = [name for name in sorted(clicks.partitions) if clicks.is_there(name)]
        name = _one_of(random, names)
        if len(names) < least:
            raise _InVainError
        return name


def _one_of(random: Random, found: Sequence[T]) -> T:
    if not found:
        raise _InVainError
    return random.choice(found)


def _settled(line: Facts) -> set[str]:
    return {name for name, of in line["newest"].items() if line["planned"].get(name) == of}


def _words(ended: Ended) -> str:
    if ended.refusal:
        return f"REFUSED {ended.refusal}"
    if not isinstance(ended.answer, dict):
        return "done"
    return str({name: value for name, value in ended.answer.items() if name != "seen"})
