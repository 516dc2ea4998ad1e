# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The element loop: what storing values one by one gives. Every bulk path has to agree with it."""

import struct

import carrier_storage as cs

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
CONCRETE = (F32, I32, BOOL)
ZERO = {F32: 0.0, I32: 0, BOOL: False}


def one(dtype, value):
    """`value` as one slot gives it back, stored by index."""
    c = cs.CPU(1, dtype=dtype)
    c[0] = value
    return c[0]


def loop(dtype, values, holes=True):
    """The values as a loop of index writes stores them, or the class of the error it ends with."""
    stored = []
    for value in values:
        if value is None and holes:
            stored.append(ZERO[dtype])
            continue
        try:
            stored.append(one(dtype, value))
        except (TypeError, OverflowError) as error:
            return type(error)
    return stored


def bulk(dtype, values):
    """The same through `new_like`."""
    try:
        return list(cs.CPU(0, dtype=dtype).new_like(values))
    except (TypeError, OverflowError) as error:
        return type(error)


def bits(stored):
    """Comparable: NaN equals itself, and 0.0 differs from -0.0. Errors and other values stand for themselves."""
    if isinstance(stored, type):
        return stored
    return [(type(v), struct.pack("d", v) if isinstance(v, float) and v == v else repr(v)) for v in stored]


def agree(dtype, make):
    """`make()` gives the values anew for each of the two."""
    assert bits(bulk(dtype, make())) == bits(loop(dtype, make()))
