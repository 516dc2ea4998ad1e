# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""One array of values to keep in tiers, read in pieces, converted to what a carrier stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carrier_storage.cli.errors import BadInputError
from carrier_storage.io.convert import converted

Values = NDArray[Any]
CHUNK = 1 << 18  # slots read, compared and scattered at a time: bounds the memory beside the budget
ITEM = 4  # bytes a stored slot takes, in memory and in a file


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
        """Float32 for floats, int32 for integers and bools: a file tier holds no bools."""
        return np.dtype(np.float32 if self.dtype.kind == "f" else np.int32)

    @property
    def nbytes(self) -> int:
        """As stored."""
        return self.size * ITEM

    def values(self, start: int, stop: int) -> Values:
        """Slots [start, stop) as stored, in memory of their own."""
        try:
            values = converted(self.fetch(start, stop), start, self.label)
        except (ValueError, OverflowError) as error:
            raise BadInputError(str(error)) from None
        return values.astype(self.stored, copy=False)
