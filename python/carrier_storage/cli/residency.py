# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Keeps no more than a budget of bytes promoted: the hierarchy that was used longest ago goes down first."""

import time
from collections import OrderedDict
from dataclasses import dataclass

import carrier_storage as cs
from carrier_storage.cli.entries import ITEM, Entry
from carrier_storage.cli.memory import resident
from carrier_storage.cli.result import Result, Sample

_MOST_SAMPLES = 4096


@dataclass(eq=False, slots=True)
class Part:
    """A piece of an entry, slots [start, stop) of it, in a hierarchy of its own."""

    number: int  # of the entry
    entry: Entry
    start: int
    stop: int
    hierarchy: cs.Evictable

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def nbytes(self) -> int:
        return self.size * ITEM


class Residency:
    def __init__(self, budget: int, result: Result) -> None:
        self._budget = budget
        self._result = result
        self._promoted: OrderedDict[Part, None] = OrderedDict()  # least recently used first
        self._began = time.perf_counter()
        self._interval = 0.002
        self._sampled = -1.0
        self.sample(always=True)

    def make_room(self, nbytes: int) -> None:
        """Evicts until that much fits."""
        while self._promoted and self._result.in_memory + nbytes > self._budget:
            part = next(iter(self._promoted))
            before = time.perf_counter()
            part.hierarchy.evict()
            self._result.evictions.add(part.nbytes, time.perf_counter() - before)
            del self._promoted[part]
            self._result.note(memory=-part.nbytes, files=part.nbytes)
            self.sample()

    def add(self, part: Part) -> None:
        """A hierarchy that was made promoted, after `make_room`."""
        self._promoted[part] = None
        self._result.note(memory=part.nbytes)
        self.sample()

    def promote(self, part: Part) -> None:
        """Brings it up, if it is not, and makes it the last to go."""
        if part in self._promoted:
            self._promoted.move_to_end(part)
            return
        self.make_room(part.nbytes)
        before = time.perf_counter()
        part.hierarchy.promote()
        self._result.promotions.add(part.nbytes, time.perf_counter() - before)
        self._promoted[part] = None
        self._result.note(memory=part.nbytes, files=-part.nbytes)
        self.sample()

    def sample(self, *, always: bool = False) -> None:
        """A point of the plot. When there are many, every second one goes and the next ones come half as often."""
        now = time.perf_counter() - self._began
        if not always and now - self._sampled < self._interval:
            return
        self._sampled = now
        timeline = self._result.timeline
        timeline.append(Sample(now, self._result.in_memory, self._result.in_files, resident()))
        if len(timeline) >= _MOST_SAMPLES:
            del timeline[1::2]
            self._interval *= 2
