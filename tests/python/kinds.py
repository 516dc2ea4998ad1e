# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Every carrier kind under one face, so that a common test is written once.

A `Cell` is one kind with one dtype: it makes carriers that hold given values and says what may be expected of them.
"""

import array
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import carrier_storage as cs
import pytest

from customs import HookedCarrier

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
CONCRETE = (F32, I32, BOOL)
NUMERIC = (F32, I32)

_CODES = {F32: "f", I32: "i", BOOL: "B"}
_ZEROS = {F32: 0.0, I32: 0, BOOL: False}
_SAMPLES = {
    F32: [1.5, -2.25, 0.1, -0.0, 3e38, 1e-40, 7.0, 1e-3],
    I32: [1, -2, 2**31 - 1, -(2**31), 0, 16777217, 7, -5],
    BOOL: [True, False, True, True, False, False, True, False],
}
_TYPES = {F32: float, I32: int, BOOL: bool}
# A carrier over external memory does not own it: the test process does, for good.
_external: list[array.array] = []


def stored(value: float, dtype: cs.DType) -> float:
    """`value` as a carrier gives it back."""
    return array.array("f", [value])[0] if dtype is F32 else value


def make_cpu(values, dtype, mutable=True):
    return cs.CPU(0, dtype=dtype).new_like(values, mutable=mutable)


def make_wrapped(values, dtype, mutable=True):
    memory = array.array(_CODES[dtype], [*values, _ZEROS[dtype]])
    _external.append(memory)
    return cs.CPU(len(memory) - 1, memory.buffer_info()[0], mutable=mutable, dtype=dtype)


def make_generic(values, dtype, mutable=True):
    return cs.Generic(values, dtype=dtype, mutable=mutable)


def make_file(values, dtype, mutable=True):
    return cs.FileBacked(dtype=dtype).new_like(values, mutable=mutable)


def make_metal(values, dtype, mutable=True):
    return cs.Metal(0, dtype=dtype).new_like(values, mutable=mutable)


def make_hooked(values, dtype, mutable=True):
    normalized = list(cs.Generic(values, dtype=dtype))
    return HookedCarrier(normalized, dtype, mutable)


def hierarchy(primary, secondary):
    """A maker of hierarchies from the makers of their tiers; the secondary starts with one slot, or none."""

    def make(values, dtype, mutable=True):
        values = list(values)
        if not values:
            return make([_ZEROS[dtype]], dtype).new_like([], mutable=mutable)
        start = [] if secondary is make_file else [_ZEROS[dtype]]
        return cs.Evictable(primary(values, dtype, mutable), secondary(start, dtype))

    return make


make_cpu_file = hierarchy(make_cpu, make_file)
make_cpu_cpu = hierarchy(make_cpu, make_cpu)
make_file_cpu = hierarchy(make_file, make_cpu)


@dataclass(frozen=True)
class Kind:
    name: str
    make: Callable
    dtypes: tuple = CONCRETE
    support: tuple = CONCRETE  # what supports_storage_dtype answers True for; None: the held dtype alone
    scatters: bool = True
    holes: bool = True  # new_like takes None
    tiers: tuple[str, str] | None = None  # class names of primary and secondary
    custom: bool = False  # values pass through a Python class
    needs: Callable[[], str | None] = lambda: None  # why the kind cannot be had here

    @property
    def evictable(self) -> bool:
        return self.tiers is not None


@functools.cache
def metal_absence() -> str | None:
    try:
        cs.Metal(1)
    except RuntimeError as error:
        return f"no Metal runtime: {error}"
    return None


_GENERIC = (cs.DType.Any, cs.DType.Floating, *CONCRETE)
_FILE = (cs.DType.Floating, *NUMERIC)

KINDS = [
    Kind("cpu", make_cpu),
    Kind("wrapped", make_wrapped),
    Kind("generic", make_generic, support=_GENERIC, holes=False),
    Kind("file", make_file, NUMERIC, _FILE, scatters=False),
    Kind("metal", make_metal, needs=metal_absence),
    Kind("custom", make_hooked, CONCRETE, custom=True),
    Kind("cpu_file", make_cpu_file, NUMERIC, NUMERIC, tiers=("CPU", "FileBacked")),
    Kind("cpu_cpu", make_cpu_cpu, tiers=("CPU", "CPU")),
    Kind("file_cpu", make_file_cpu, NUMERIC, NUMERIC, scatters=False, tiers=("FileBacked", "CPU")),
    Kind(
        "generic_file",
        hierarchy(make_generic, make_file),
        NUMERIC,
        _FILE,
        holes=False,
        tiers=("Generic", "FileBacked"),
    ),
    Kind("nested_primary", hierarchy(make_cpu_file, make_cpu), NUMERIC, NUMERIC, tiers=("Evictable", "CPU")),
    Kind(
        "nested_secondary", hierarchy(make_cpu, make_cpu_file), NUMERIC, NUMERIC, tiers=("CPU", "Evictable")
    ),
    Kind(
        "metal_file",
        hierarchy(make_metal, make_file),
        NUMERIC,
        NUMERIC,
        tiers=("Metal", "FileBacked"),
        needs=metal_absence,
    ),
    Kind("metal_cpu", hierarchy(make_metal, make_cpu), tiers=("Metal", "CPU"), needs=metal_absence),
    Kind("cpu_metal", hierarchy(make_cpu, make_metal), tiers=("CPU", "Metal"), needs=metal_absence),
    Kind("custom_cpu", hierarchy(make_hooked, make_cpu), tiers=("HookedCarrier", "CPU"), custom=True),
    Kind("cpu_custom", hierarchy(make_cpu, make_hooked), tiers=("CPU", "HookedCarrier"), custom=True),
]


@dataclass(frozen=True)
class Cell:
    """One kind with one dtype."""

    kind: Kind
    dtype: cs.DType

    def make(self, values: Sequence | int = 3, *, mutable: bool = True):
        """A carrier holding `values`, or that many samples."""
        if isinstance(values, int):
            values = self.samples(values)
        return self.kind.make(values, self.dtype, mutable)

    def samples(self, count: int) -> list:
        """`count` values as they read back, no two neighbours alike."""
        base = [stored(v, self.dtype) for v in _SAMPLES[self.dtype]]
        return [base[i % len(base)] for i in range(count)]

    @property
    def zero(self):
        return _ZEROS[self.dtype]

    @property
    def type(self) -> type:
        return _TYPES[self.dtype]

    @property
    def good(self):
        """A value to write that differs from every sample."""
        return {F32: 42.5, I32: 42}.get(self.dtype, True)

    def released(self, values=3, *, mutable=True):
        carrier = self.make(values, mutable=mutable)
        carrier.release()
        return carrier

    def evicted(self, values=3, *, mutable=True):
        carrier = self.make(values, mutable=mutable)
        carrier.evict()
        return carrier

    def __str__(self) -> str:
        return f"{self.kind.name}-{self.dtype.name}"


def _parameters(found: list[Cell]) -> list:
    # A kind that cannot be had here is one skip with its reason (test_r13_metal.py), not hundreds.
    return [pytest.param(cell, id=str(cell)) for cell in found if cell.kind.needs() is None]


def cells(where: Callable[[Kind], bool] = lambda kind: True, dtypes=CONCRETE) -> list:
    """Parameters: all cells of the kinds that fit and that can be had here."""
    return _parameters([Cell(kind, d) for kind in KINDS if where(kind) for d in kind.dtypes if d in dtypes])


def each(where: Callable[[Kind], bool] = lambda kind: True, dtypes=CONCRETE):
    """Decorator: runs a test for each such cell, as its argument `cell`."""
    return pytest.mark.parametrize("cell", cells(where, dtypes))


def each_kind(where: Callable[[Kind], bool] = lambda kind: True):
    """Decorator: runs a test once a kind, with the first dtype that it holds."""
    return pytest.mark.parametrize("cell", _parameters([Cell(k, k.dtypes[0]) for k in KINDS if where(k)]))


def is_evictable(kind: Kind) -> bool:
    return kind.evictable


def scatters(kind: Kind) -> bool:
    return kind.scatters


def plain(kind: Kind) -> bool:
    """Holds its values itself."""
    return not kind.evictable
