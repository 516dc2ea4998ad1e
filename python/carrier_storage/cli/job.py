# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Moves entries through their tiers and verifies them. Knows nothing of files given or of screens."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

import carrier_storage as cs
from carrier_storage.cli import peek
from carrier_storage.cli.entries import CHUNK, ITEM, Entry, Values
from carrier_storage.cli.generated import PERIOD, expected, update
from carrier_storage.cli.residency import Part, Residency
from carrier_storage.cli.result import Mismatch, Result

LEAST_BUDGET = 1 << 16
MOST_PARTS = 1 << 16
_SMALLEST_PART, _LARGEST_PART = 1 << 14, 1 << 26
_PAGE = 4096

Progress = Callable[[str, int], None]


def part_size(budget: int) -> int:
    """Bytes of the largest piece that goes into one hierarchy: a quarter of the budget, within limits."""
    return min(max(budget // 4, _SMALLEST_PART), _LARGEST_PART) // _PAGE * _PAGE


def least_budget(total: int) -> int:
    """The smallest budget for so many bytes: below it the pieces would be too many."""
    return max(LEAST_BUDGET, 4 * total // MOST_PARTS)


def line(size: int, step: int = 1) -> cs.Layout:
    return cs.Layout(cs.Shape(size), cs.Stride(step))


def windows(size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, CHUNK):
        yield start, min(start + CHUNK, size)


class Job:
    """Load, any number of passes, a last look; `close` in any case.

    `progress(phase, bytes)` is told of each part that is done.
    """

    def __init__(
        self, entries: Sequence[Entry], budget: int, progress: Progress = lambda phase, done: None
    ) -> None:
        self.result = Result(list(entries), budget)
        self._residency = Residency(budget, self.result)
        self._progress = progress
        self._passes = 0
        self.parts: list[Part] = []
        self._prototypes = {
            dtype: cs.CPU(0, dtype=cs.DType.from_name(dtype.title())) for dtype in ("float32", "int32")
        }

    def load(self) -> None:
        """Puts every entry into hierarchies, in pieces of at most `part_size`."""
        slots = part_size(self.result.budget) // ITEM
        for number, entry in enumerate(self.result.entries):
            for start in range(0, entry.size, slots):
                self._load_part(number, entry, start, min(start + slots, entry.size))

    def _load_part(self, number: int, entry: Entry, start: int, stop: int) -> None:
        dtype = self._prototypes[entry.stored.name].dtype()
        self._residency.make_room((stop - start) * ITEM)
        primary = cs.CPU(stop - start, dtype=dtype, empty=True)
        part = Part(number, entry, start, stop, cs.Evictable(primary, cs.FileBacked(dtype=dtype)))
        self.parts.append(part)
        self._residency.add(part)
        for first, last in windows(part.size):
            self._write(part, entry.values(start + first, start + last), first, 1)
        self._done("Loading", part)

    def walk(self) -> None:
        """One pass: every part comes up, is verified, and has an eighth of its slots written."""
        for part in self.parts:
            self._residency.promote(part)
            self._verify(part)
            self._update(part)
            self._done(f"Pass {self._passes + 1}", part)
        self._passes += 1
        self.result.passes += 1

    def inspect(self) -> None:
        """Verifies every part where it is, in memory or in its file."""
        for part in self.parts:
            self._verify(part)
            self._done("Verifying", part)

    def close(self) -> None:
        """Gives memory and files back."""
        self._residency.sample(always=True)
        for part in self.parts:
            part.hierarchy.release()
        self.parts.clear()

    def _write(self, part: Part, values: Values, offset: int, step: int) -> None:
        if not values.size:
            return
        staged = self._prototypes[values.dtype.name].new_like(values)
        mapping = line(values.size, step)
        source = cs.Tensor(staged, 0, line(values.size))
        part.hierarchy.scatter(source, cs.Tensor(part.hierarchy, offset, mapping), mapping)
        self.result.scatters += 1
        self.result.scattered += values.nbytes

    def _update(self, part: Part) -> None:
        """Windows and parts begin at multiples of the period, so a slot's place in it is the same in each."""
        for first, last in windows(part.size):
            values = update(part.entry, self._passes, part.start + first, part.start + last)
            self._write(part, values, first + self._passes % PERIOD, PERIOD)

    def _verify(self, part: Part) -> None:
        for first, last in windows(part.size):
            want = expected(part.entry, part.start + first, part.start + last, self._passes).view(np.uint32)
            have = peek.view_of(part.hierarchy, first, last, part.entry.stored).view(np.uint32)
            self.result.verified += want.nbytes
            if have.size < want.size:
                self.result.mismatches += want.size - have.size
                want = want[: have.size]
            if np.array_equal(want, have):
                continue
            where = np.flatnonzero(want != have)
            self.result.mismatches += where.size
            for i in where[: self.result.room_for_examples()].tolist():
                place = part.start + first + i
                self.result.examples.append(
                    Mismatch(part.entry.label, place, self._passes, f"{want[i]:08x}", f"{have[i]:08x}")
                )

    def _done(self, phase: str, part: Part) -> None:
        self._progress(phase, part.nbytes)
