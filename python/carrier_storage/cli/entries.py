# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""One array of values to keep in tiers, read in pieces, converted to what a carrier stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carrier_storage.cli.errors import BadInputError

Values = NDArray[Any]
CHUNK = 1 << 18  # slots read, compared and scattered at a time: bounds the memory beside the budget
ITEM = 4  # bytes a stored slot takes, in memory and in a file

_INT32 = np.iinfo(np.int32)


def stored_as(dtype: np.dtype) -> np.dtype | None:
    """Float32 for floats, int32 for integers and bools (a file tier holds no bools); None for anything else."""
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return np.dtype(np.float32)
    if dtype.kind in "iub":
        return np.dtype(np.int32)
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """An array in a source. `fetch(start, stop)` reads its values as they are in the file, in file order."""

    file: str  # as the user wrote it
    name: str  # within the file; empty when the file is one array
    dtype: np.dtype
    size: int  # slots
    fetch: Callable[[int, int], Values]

    @property
    def label(self) -> str:
        return f"{self.file}: {self.name!r}" if self.name else self.file

    @property
    def stored(self) -> np.dtype:
        stored = stored_as(self.dtype)
        assert stored is not None, self.label
        return stored

    @property
    def nbytes(self) -> int:
        """As stored."""
        return self.size * ITEM

    def values(self, start: int, stop: int) -> Values:
        """Slots [start, stop) as stored, in memory of their own."""
        raw = self.fetch(start, stop)
        if raw.dtype.kind == "b":  # any byte but zero is true
            return (raw.view(np.uint8) != 0).astype(self.stored)
        if raw.dtype.kind in "iu" and raw.dtype != np.int32:
            self._check_range(raw, start)
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the range is infinity, as IEEE 754 rounds
            return raw.astype(self.stored)

    def _check_range(self, raw: Values, start: int) -> None:
        if raw.min() >= _INT32.min and raw.max() <= _INT32.max:
            return
        where = int(np.argmax((raw < _INT32.min) | (raw > _INT32.max)))
        raise BadInputError(
            f"{self.label}: value {raw[where]} at index {start + where} does not fit Int32 ([-2**31, 2**31 - 1])"
        )


def check(file: str, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Refuses what no carrier can hold; the number of slots otherwise."""
    label = f"{file}: {name!r}" if name else file
    if dtype.hasobject:
        raise BadInputError(f"{label}: holds pickled Python objects, which are never loaded")
    if stored_as(dtype) is None:
        raise BadInputError(
            f"{label}: dtype {dtype} is not supported; float32, int32 and bool are kept as they are, other integers and"
            " floats up to 64 bits are converted"
        )
    if any(not isinstance(extent, int) or isinstance(extent, bool) or extent < 0 for extent in shape):
        raise BadInputError(f"{label}: the header gives the shape {shape}, which no array has")
    size = 1
    for extent in shape:
        size *= extent
    if size == 0:
        raise BadInputError(f"{label}: has no elements (shape {shape})")
    return size
