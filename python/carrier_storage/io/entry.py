# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""One array of a file: what its header says, checked, and its values, not read yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carrier_storage.io.convert import CONVERTED, storable
from carrier_storage.io.disk import Range, Source

Values = NDArray[Any]
MOST_AXES = 64  # that an array of NumPy's can have


@dataclass(frozen=True, slots=True)
class Entry:
    """An array in a file, in file order: the last axis fastest, or with `fortran` the first."""

    name: str
    label: str  # file and name, as messages give them
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    size: int  # elements
    source: Source

    @property
    def nbytes(self) -> int:
        """In the file."""
        return self.size * self.dtype.itemsize

    @property
    def offset(self) -> int | None:
        """Where the values begin in the file, if they lie there as they are."""
        return self.source.offset if isinstance(self.source, Range) else None

    def fetch(self, start: int, stop: int) -> Values:
        """Elements [start, stop) as they are in the file, in memory of their own."""
        width = self.dtype.itemsize
        raw = np.empty((stop - start) * width, np.uint8)
        self.source.read_into(start * width, raw.data)
        return raw.view(self.dtype)


# By name. The structure of the file has been checked; calling checks the entry, and what belongs to it alone.
Contents = Mapping[str, Callable[[], Entry]]


def count(label: str, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Refuses what no carrier can hold (ValueError); the number of elements otherwise."""
    if dtype.hasobject:
        raise ValueError(f"{label}: holds pickled Python objects, which are never loaded")
    if not storable(dtype):
        raise ValueError(f"{label}: dtype {dtype} is not supported; {CONVERTED}")
    if any(not isinstance(extent, int) or isinstance(extent, bool) or extent < 0 for extent in shape):
        raise ValueError(f"{label}: the header gives the shape {_short(shape)}, which no array has")
    if len(shape) > MOST_AXES:
        raise ValueError(f"{label}: the header gives {len(shape)} axes; an array has {MOST_AXES} at most")
    size = 1
    for extent in shape:
        size *= extent
    if size == 0:
        raise ValueError(f"{label}: has no elements (shape {shape})")
    return size


def match_size(label: str, dtype: np.dtype, size: int, there: int) -> None:
    """The header has to account for every byte. ValueError."""
    told = size * dtype.itemsize
    if told > there:
        raise ValueError(
            f"{label}: is truncated: the header tells of {told} bytes of values, {there} are there"
        )
    if told < there:
        raise ValueError(f"{label}: has {there - told} bytes after the {told} that its header tells of")


def _short(shape: tuple[int, ...]) -> str:
    text = str(shape)
    return text if len(text) < 200 else f"{text[:200]}..."
