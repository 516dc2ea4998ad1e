# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Rows, and how they are measured and judged.

A row is one job done by several contenders. All of them run in turn, round after round, and their medians are compared:
absolute figures drift from hour to hour on a shared machine, ratios of one run do not.
"""

from __future__ import annotations

import contextlib
import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Contender = Callable[[], float]  # one sample: seconds an operation, or what the row's unit says
AT_LIMIT = 1.1  # who takes at most so many times what the bare control takes is as fast as the machine


class UnavailableError(Exception):
    """Raised by a contender that this machine cannot run; says why."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    mib: int = 256  # payload of the rows that write files
    quick: bool = False  # tiny sizes, one sample: shows that every row runs, measures nothing

    def pick(self, full: int, tiny: int) -> int:
        return tiny if self.quick else full


@dataclass
class Target:
    """``of`` over the least of ``over`` is to be at most ``limit``; with nothing in ``over``, ``of`` itself is."""

    of: str
    over: tuple[str, ...]
    limit: float | None

    def ratio(self, medians: dict[str, float]) -> float | None:
        """None where one that it needs has not run."""
        if self.of not in medians or not all(name in medians for name in self.over):
            return None
        if not self.over:
            return medians[self.of]
        least = min(medians[name] for name in self.over)
        return medians[self.of] / least if least > 0 else float("inf")

    def holds(self, medians: dict[str, float]) -> bool | None:
        ratio = self.ratio(medians)
        return None if ratio is None or self.limit is None else ratio <= self.limit


@dataclass
class Row:
    """One job. ``limits`` maps a rival to the largest ratio, ours / rival, that is the target; ``"a|b"`` is the faster.

    A rival that is None is left out, with its target. ``control`` names the rivals that are the job in bare C.
    """

    name: str
    ours: Contender
    rivals: dict[str, Contender | None]
    limits: dict[str, float] = field(default_factory=dict)
    at_most: float | None = None  # of ours itself, in the row's unit
    control: str = "bare C"
    rounds: int = 15
    unit: str = "s"
    warm: bool = True  # the first sample of each contender does not count
    head = "ours"

    def contenders(self) -> dict[str, Contender]:
        return {self.head: self.ours, **{name: c for name, c in self.rivals.items() if c is not None}}

    def targets(self) -> list[Target]:
        """Those that are judged, then what is shown only."""
        judged = [Target(self.head, tuple(over.split("|")), limit) for over, limit in self.limits.items()]
        if self.at_most is not None:
            judged.append(Target(self.head, (), self.at_most))
        return judged + [Target(self.head, (name,), None) for name in self.rivals if name not in self.limits]

    def verdict(self, medians: dict[str, float]) -> str:
        results = [t.holds(medians) for t in self.targets() if t.limit is not None]
        if not results:
            return ""
        known = [held for held in results if held is not None]
        if not known:
            return "not judged"
        if all(known):
            return "holds"
        bare = [medians[name] for name in self.control.split("|") if name in medians]
        return "holds (at limit)" if bare and medians[self.head] <= AT_LIMIT * min(bare) else "MISSES"


@dataclass
class Growth:
    """One job at several sizes, in seconds an element: the largest may cost 1.5 times the cheapest, if the
    control's does.

    ``ours`` and ``control`` map a size's name to its contender, the largest last. ``bare``: the control is bare C.
    """

    name: str
    ours: dict[str, Contender]
    control: dict[str, Contender]
    bare: bool = True
    limit: float = 1.5
    rounds: int = 7
    unit: str = "s"
    warm: bool = True

    @property
    def head(self) -> str:
        return list(self.ours)[-1]

    def contenders(self) -> dict[str, Contender]:
        return {**self.ours, **{f"control {size}": c for size, c in self.control.items()}}

    def _targets(self) -> tuple[Target, Target]:
        theirs = tuple(f"control {size}" for size in self.control)
        return (
            Target(self.head, tuple(self.ours), self.limit),
            Target(f"control {self.head}", theirs, self.limit),
        )

    def targets(self) -> list[Target]:
        ours, theirs = self._targets()
        return [ours, Target(theirs.of, theirs.over, None)]

    def verdict(self, medians: dict[str, float]) -> str:
        ours, theirs = (target.holds(medians) for target in self._targets())
        if ours:
            return "holds"
        control = medians.get(f"control {self.head}", 0.0)
        if self.bare and medians[self.head] <= AT_LIMIT * control:
            return "holds (at limit)"
        return "not judged: the control grows too" if theirs is False else "MISSES"


@dataclass
class Result:
    row: Row | Growth
    medians: dict[str, float]
    notes: list[str]
    judged: bool = True

    @property
    def verdict(self) -> str:
        if not self.judged:
            return ""
        return self.row.verdict(self.medians) if self.row.head in self.medians else "not judged"

    def cells(self) -> Iterator[tuple[str, float, float | None]]:
        """Each comparison that was made: what it says, its ratio, its limit."""
        for target in self.row.targets():
            ratio = target.ratio(self.medians)
            if ratio is None:
                continue
            if not target.over:
                said = "itself"
            elif target.of in target.over:
                said = "least" if target.of == self.row.head else "least of control"
            else:
                said = "|".join(target.over)
            yield said, ratio, target.limit


def timed(
    run: Callable[..., object],
    setup: Callable[[], object] | None = None,
    *,
    per: float = 1,
    keep: bool = False,
    after: Callable[..., object] | None = None,
) -> Contender:
    """Seconds that ``run`` takes, over ``per``. ``setup`` makes its argument, untimed.

    What ``run`` returns is dropped inside the time, or with ``keep`` after it. ``after(made, kept)`` cleans up,
    untimed.
    """

    def sample() -> float:
        made = () if setup is None else (setup(),)
        kept = None
        try:
            begin = time.perf_counter()
            if keep:
                kept = run(*made)
            else:
                run(*made)
            return (time.perf_counter() - begin) / per
        finally:
            if after is not None:
                after(made[0] if made else None, kept)

    return sample


def net(statement: str, *, unroll: int = 20, loops: int = 500, **names: object) -> Contender:
    """Seconds that one execution of the statement takes, its names being locals.

    It stands ``unroll`` times in the body of a loop; what the loop itself takes is measured beside it and subtracted.
    A sample is the least of three: so short a job is easily interrupted.
    """
    source = [
        f"def sample(clock, turns, {', '.join(names)}):",
        "    begin = clock()",
        "    for _ in turns:",
        *[f"        {statement}"] * unroll,
        "    middle = clock()",
        "    for _ in turns:",
        "        pass",
        "    return 2 * middle - begin - clock()",
    ]
    scope: dict[str, Callable[..., float]] = {}
    exec("\n".join(source), scope)
    function, turns, values = scope["sample"], range(loops), tuple(names.values())
    return lambda: min(function(time.perf_counter, turns, *values) for _ in range(3)) / (unroll * loops)


def measure(row: Row | Growth, quick: bool) -> Result:
    """Runs one row, its contenders in another order each round: none always comes after the same one."""
    contenders, notes, order = row.contenders(), [], random.Random(1)
    samples: dict[str, list[float]] = {}
    for name, contender in contenders.items():  # warms up, and shows who can run at all
        try:
            samples[name] = [contender()]
        except UnavailableError as why:
            notes.append(f"{name}: {why}")
    names = list(samples)
    if not quick:
        if row.warm:
            samples = {name: [] for name in names}
        gc.collect()
        gc.disable()
        try:
            for _ in range(row.rounds - (not row.warm)):
                order.shuffle(names)
                for name in names:
                    samples[name].append(contenders[name]())
        finally:
            gc.enable()
    return Result(row, {name: statistics.median(taken) for name, taken in samples.items()}, notes, not quick)


def shown(value: float, unit: str) -> str:
    """Three digits, and a time with a unit that suits them."""
    if unit != "s":
        return f"{value:.3g} {unit}"
    for smaller, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {smaller}"
    return f"{value / 1e-9:.3g} ns"


def line(result: Result) -> str:
    """The row as it is printed: our median, a ratio a rival with the target where there is one, the verdict."""
    row, cells = result.row, []
    for said, ratio, limit in result.cells():
        if said == "itself":
            cells.append(f"(<= {shown(limit or 0, row.unit)})")
        else:
            cells.append(f"{ratio:.2f} x {said}" + (f" (<= {limit:.3g})" if limit else ""))
    ours = shown(result.medians[row.head], row.unit) if row.head in result.medians else "-"
    return f"{row.name:44} {ours:>9}  {', '.join(cells)}  {result.verdict}".rstrip()


def report(rows: Iterator[Row | Growth], quick: bool, noted: set[str]) -> list[Result]:
    """Measures and prints row after row. What a row makes is removed at the end, also after an error."""
    results = []
    with contextlib.closing(rows):
        for row in rows:
            result = measure(row, quick)
            results.append(result)
            print(line(result), flush=True)
            for note in result.notes:
                if note not in noted:
                    noted.add(note)
                    print(f"    left out: {note}", flush=True)
    return results
