# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What a job found, for people and for machines."""

from dataclasses import dataclass, field
from typing import Any

from carrier_storage.cli.entries import Entry

_MOST_EXAMPLES = 10


@dataclass(slots=True)
class Moves:
    """Transitions in one direction."""

    count: int = 0
    nbytes: int = 0
    seconds: float = 0.0

    def add(self, nbytes: int, seconds: float) -> None:
        self.count += 1
        self.nbytes += nbytes
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A slot whose bits are not those of the source."""

    label: str
    index: int
    passes: int  # done before it was seen
    want: str
    have: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes at a moment, in seconds from the start."""

    seconds: float
    memory: int
    files: int
    resident: int


@dataclass(slots=True)
class Result:
    entries: list[Entry]
    budget: int
    passes: int = 0
    in_memory: int = 0
    in_files: int = 0
    peak_memory: int = 0
    peak_files: int = 0
    evictions: Moves = field(default_factory=Moves)
    promotions: Moves = field(default_factory=Moves)
    scatters: int = 0
    scattered: int = 0
    verified: int = 0
    mismatches: int = 0
    examples: list[Mismatch] = field(default_factory=list)
    timeline: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    resident_before: int = 0
    resident_peak: int = 0

    @property
    def total(self) -> int:
        return sum(entry.nbytes for entry in self.entries)

    def note(self, memory: int = 0, files: int = 0) -> None:
        self.in_memory += memory
        self.in_files += files
        self.peak_memory = max(self.peak_memory, self.in_memory)
        self.peak_files = max(self.peak_files, self.in_files)

    def room_for_examples(self) -> int:
        return _MOST_EXAMPLES - len(self.examples)

    def for_machines(self) -> dict[str, Any]:
        """Bytes and seconds, in plain types."""

        def moves(m: Moves) -> dict[str, float]:
            return {"count": m.count, "bytes": m.nbytes, "seconds": m.seconds}

        return {
            "entries": [
                {
                    "file": e.file, "name": e.name, "dtype": e.dtype.name, "stored": e.stored.name,
                    "slots": e.size, "bytes": e.nbytes,
                }
                for e in self.entries
            ],
            "bytes": self.total,
            "budget": self.budget,
            "passes": self.passes,
            "tiers": {
                "CPU": {"bytes": self.in_memory, "peak": self.peak_memory},
                "FileBacked": {"bytes": self.in_files, "peak": self.peak_files},
            },
            "evictions": moves(self.evictions),
            "promotions": moves(self.promotions),
            "scatters": {"count": self.scatters, "bytes": self.scattered},
            "verified_bytes": self.verified,
            "resident": {"before": self.resident_before, "peak": self.resident_peak},
            "seconds": self.seconds,
            "mismatches": self.mismatches,
            "examples": [
                {"entry": m.label, "index": m.index, "passes": m.passes, "want": m.want, "have": m.have}
                for m in self.examples
            ],
        }  # fmt: skip
