# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Typed, tiered storage for tensor programs.

A carrier is a one-dimensional sequence of Float32, Int32 or Bool slots on some medium, with exact dtype identity,
guarded mutation, a version, exclusive ownership and a clean end of life. An Evictable composes two carriers into a
hierarchy that moves its values down and up again.

>>> import carrier_storage as cs
>>> c = cs.Evictable(cs.CPU(3), cs.FileBacked(dtype=cs.DType.Float32))
>>> c[1] = 2.5
>>> c.evict()
>>> c.promote()
>>> list(c)
[0.0, 2.5, 0.0]
"""

from carrier_storage._core import (
    CPU,
    Carrier,
    CompoundDType,
    DType,
    DTypeCategory,
    Evictable,
    FileBacked,
    Generic,
    Layout,
    Metal,
    Ownership,
    Shape,
    SimpleDType,
    Stride,
    Subtensor,
    Tensor,
    __version__,
    accepts_storage_dtype,
    storage_zero,
    validate_storage_dtype,
)

__all__ = [
    "CPU",
    "Carrier",
    "CompoundDType",
    "DType",
    "DTypeCategory",
    "Evictable",
    "FileBacked",
    "Generic",
    "Layout",
    "Metal",
    "Ownership",
    "Shape",
    "SimpleDType",
    "Stride",
    "Subtensor",
    "Tensor",
    "__version__",
    "accepts_storage_dtype",
    "storage_zero",
    "validate_storage_dtype",
]
