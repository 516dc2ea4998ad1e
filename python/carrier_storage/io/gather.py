# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values on their way into a file: of carriers and Tensors, wherever they lie, in the order that files have."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from carrier_storage import Carrier, DType, Evictable, Layout, Shape, Stride, Tensor
from carrier_storage.io.entry import MOST_AXES

_DTYPES: dict[DType, np.dtype] = {
    DType.Float32: np.dtype(np.float32),
    DType.Int32: np.dtype(np.int32),
    DType.Bool: np.dtype(np.bool_),
}
CHUNK = 1 << 20  # slots that are read at a time
_MOST_SCATTERED = 16  # pieces of a Tensor whose slots lie apart: reading each may pass over all of them


class Outgoing:
    """An array to be saved. TypeError, RuntimeError (released), ValueError (what no file holds)."""

    def __init__(self, name: str, label: str, what: Tensor | Carrier) -> None:
        if not isinstance(what, (Tensor, Carrier)):
            raise TypeError(f"{label}: a Tensor or a carrier is saved, not {type(what).__name__}")
        if isinstance(what, Tensor) and len(what.subtensors) != 1:
            raise ValueError(f"{label}: several subtensors ({what.dtype().name}), which no file holds")
        self.name = name
        self._label = label
        self._carrier = what.carrier if isinstance(what, Tensor) else what
        if self._carrier.is_released():
            raise RuntimeError(f"{label}: the carrier is released")
        dtype = self._carrier.dtype()
        if dtype not in _DTYPES:
            raise ValueError(f"{label}: dtype {dtype.name}; Float32, Int32 and Bool are saved")
        self.dtype = _DTYPES[dtype]
        self._tensor = what if isinstance(what, Tensor) else None
        self.shape, self._steps = _axes(what)
        self.size = what.size()
        if self.size == 0:
            raise ValueError(f"{label}: has no elements, and could not be loaded again")
        if len(self.shape) > MOST_AXES:
            raise ValueError(f"{label}: has {len(self.shape)} axes; an array has {MOST_AXES} at most")
        self._version = self._carrier.version

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def chunks(self) -> Iterator[memoryview]:
        """All values, the last axis fastest, in pieces that are copies."""
        step = CHUNK if self._is_dense() else max(CHUNK, -(-self.size // _MOST_SCATTERED))
        for start in range(0, self.size, step):
            yield self._read(start, min(start + step, self.size))

    def require_unchanged(self) -> None:
        """RuntimeError when values may have changed since the array was looked at first."""
        if self._carrier.version != self._version:
            raise RuntimeError(f"{self._label}: was written while it was saved")

    def _is_dense(self) -> bool:
        """Whether the slots lie in the order in which they are saved."""
        step = 1
        for extent, mine in zip(reversed(self.shape), reversed(self._steps), strict=True):
            if extent > 1 and mine != step:
                return False
            step *= extent
        return True

    def _read(self, start: int, stop: int) -> memoryview:
        where = _residence(self._carrier)
        while True:
            try:
                return self._source(where).read(start, stop)
            except RuntimeError:
                moved = _residence(self._carrier)
                if moved is where:
                    raise
                where = moved

    def _source(self, where: Carrier) -> Any:
        if self._tensor is None:
            return where
        # A Tensor reads its first mode fastest.
        layout = Layout(Shape(*reversed(self.shape)), Stride(*reversed(self._steps)))
        return Tensor(where, self._tensor.offset, layout)


def _residence(carrier: Carrier) -> Carrier:
    """Where the values are now: an evicted hierarchy's are in its secondary, which may be read in place."""
    while isinstance(carrier, Evictable) and carrier.is_evicted():
        carrier = carrier.secondary
    return carrier


def _axes(what: Tensor | Carrier) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and steps of the leaf modes."""
    if isinstance(what, Carrier):
        return (what.size(),), (1,)
    layout = what.layout
    return tuple(_leaves(layout.shape)), tuple(_leaves(layout.stride))


def _leaves(modes: Shape | Stride) -> Iterator[int]:
    def walk(tree: Any) -> Iterator[int]:
        for mode in tree:
            if isinstance(mode, int):
                yield mode
            else:
                yield from walk(mode)

    yield from walk(modes.__reduce__()[1][0])
