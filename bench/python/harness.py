# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Interleaved timing: every contender of a row runs in turn, round after round, and medians are compared.

Absolute figures drift from hour to hour on a shared machine; ratios of one run do not.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Contender:
    """One way to do a row's job. ``setup`` makes what ``run`` consumes, untimed, before every run."""

    run: Callable[..., object]
    setup: Callable[[], object] | None = None


@dataclass
class Row:
    """One job. ``limits`` maps a rival's name to the largest ratio (ours / rival) that is the target."""

    name: str
    ours: Contender
    rivals: dict[str, Contender]
    limits: dict[str, float] = field(default_factory=dict)
    per: float = 1.0  # operations in one run, for the printed time
    rounds: int = 15
    loops: int = 1  # runs a round, for jobs too short to time alone


@dataclass
class Result:
    row: Row
    ours: float
    rivals: dict[str, float]

    def ratio(self, rival: str) -> float:
        return self.ours / self.rivals[rival]

    def holds(self) -> bool:
        return all(
            self.ratio(name) <= limit for name, limit in self.row.limits.items() if name in self.rivals
        )


def _timed(contender: Contender, loops: int) -> float:
    run, setup = contender.run, contender.setup
    total = 0.0
    for _ in range(loops):
        if setup is None:
            begin = time.perf_counter()
            run()
            total += time.perf_counter() - begin
        else:
            made = setup()
            begin = time.perf_counter()
            run(made)
            total += time.perf_counter() - begin
            del made
    return total / loops


def measure(row: Row) -> Result:
    """Runs one row; the order of contenders turns from round to round."""
    names = ["", *row.rivals]
    contenders = {"": row.ours, **row.rivals}
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:  # warm up
        _timed(contenders[name], 1)
    gc.collect()
    gc.disable()
    try:
        for turn in range(row.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                times[name].append(_timed(contenders[name], row.loops))
    finally:
        gc.enable()
    middle = {name: statistics.median(values) / row.per for name, values in times.items()}
    return Result(row, middle[""], {name: middle[name] for name in row.rivals})


def seconds(value: float) -> str:
    """A time with a unit that keeps three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def report(rows: Iterator[Row]) -> list[Result]:
    """Measures and prints row after row: time, then a ratio a rival, with the target where there is one."""
    results = []
    for row in rows:
        result = measure(row)
        results.append(result)
        cells = []
        for name in row.rivals:
            limit = row.limits.get(name)
            cells.append(f"{result.ratio(name):.2f} x {name}" + (f" (<= {limit:g})" if limit else ""))
        mark = "" if not row.limits else ("  holds" if result.holds() else "  MISSES")
        print(f"{row.name:44} {seconds(result.ours):>9}  {', '.join(cells)}{mark}", flush=True)
    return results
