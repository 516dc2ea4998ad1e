# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Which dtype of an array becomes which dtype of a carrier, and how its values do."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from carrier_storage import DType

CONVERTED = (
    "float32, int32 and bool load as they are, and with convert=True other integers and floats up to 64 bits as Int32"
    " and Float32"
)

_STORED = {
    "f": (DType.Float32, np.dtype(np.float32)),
    "i": (DType.Int32, np.dtype(np.int32)),
    "u": (DType.Int32, np.dtype(np.int32)),
    "b": (DType.Bool, np.dtype(np.bool_)),
}
_INT32 = np.iinfo(np.int32)


def storable(dtype: np.dtype) -> bool:
    """Whether its values can become those of a carrier. Not longdouble, which is another format on each machine."""
    return dtype.kind in _STORED and dtype.itemsize <= 8


def dtype_of(dtype: np.dtype) -> DType:
    """What a storable dtype is stored as."""
    return _STORED[dtype.kind][0]


def stored_as(dtype: np.dtype) -> np.dtype:
    """The same as a NumPy dtype in native order."""
    return _STORED[dtype.kind][1]


def needs_conversion(dtype: np.dtype) -> bool:
    """Whether values may change. The order of bytes is no value."""
    return dtype.newbyteorder("=") != stored_as(dtype)


def converted(raw: NDArray[Any], start: int, label: str) -> NDArray[Any]:
    """The elements from index `start` on, as they are stored.

    Floats are rounded to the nearest binary32, beyond its range to infinity. OverflowError for an integer that does not
    fit Int32, with the label and the index. Any byte of a bool but zero is True.
    """
    if raw.dtype.kind == "b":
        return raw.view(np.uint8) != 0
    stored = stored_as(raw.dtype)
    if raw.dtype.kind in "iu" and needs_conversion(raw.dtype):
        _check_range(raw, start, label)
    with np.errstate(over="ignore", invalid="ignore"):
        return raw.astype(stored, copy=False)


def _check_range(raw: NDArray[Any], start: int, label: str) -> None:
    if raw.min() >= _INT32.min and raw.max() <= _INT32.max:
        return
    where = int(np.argmax((raw < _INT32.min) | (raw > _INT32.max)))
    raise OverflowError(
        f"{label}: value {raw[where]} at index {start + where} does not fit Int32 ([-2**31, 2**31 - 1])"
    )
