# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What the tests of exchange share: which kinds hand memory out, layouts, and what to do without a library."""

import gc
import importlib
import itertools
import os
import sys

import carrier_storage as cs
import pytest

from kinds import BOOL, F32, I32

FORMATS = {F32: "f", I32: "i", BOOL: "?"}
NAMES = {F32: "float32", I32: "int32", BOOL: "bool"}
COPYING = {"file", "custom", "file_cpu", "custom_cpu"}


def shares(kind) -> bool:
    """Its values are in host memory: they are handed out without a copy."""
    return kind.name not in COPYING


def copies(kind) -> bool:
    return not shares(kind)


def simple(kind) -> bool:
    """In host memory and no hierarchy: what is handed out by DLPack may be writable."""
    return shares(kind) and not kind.evictable


def library(name: str):
    """The library, or a skip that says what is missing."""
    if name.startswith("jax") and "libtsan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("JAX's own threads are not instrumented: the thread sanitizer takes them for races")
    known = name in sys.modules
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} is not installed here: {error}")
    if not known:  # a collection inside a test need not look at the library
        gc.collect()
        gc.freeze()
    return found


# Shape, stride, offset over a carrier of 12 slots: dense, transposed, gapped, nested, broadcast, of no mode.
LAYOUTS = [
    ((12,), (1,), 0),
    ((3, 4), (4, 1), 0),
    ((3, 4), (1, 3), 0),
    ((4,), (2,), 3),
    ((2, [3, 2]), (6, [2, 1]), 0),
    ((2, 3), (0, 1), 4),
    ((1, 5, 1), (7, 1, 0), 2),
    ((), (), 11),
]


def leaves(tree) -> list:
    """The numbers of nested lists."""
    return [n for item in tree for n in (leaves(item) if isinstance(item, list) else [item])]


def layouts(carrier):
    """Tensors over the carrier, one for each layout, each with what its array must be: axis k is the k-th leaf."""
    np = library("numpy")
    for shape, stride, offset in LAYOUTS:
        extents, steps = leaves(shape), leaves(stride)
        array = np.empty(extents, NAMES[carrier.dtype()])
        for at in itertools.product(*map(range, extents)):
            array[at] = carrier[offset + sum(i * s for i, s in zip(at, steps, strict=True))]
        layout = cs.Layout(cs.Shape(list(shape)), cs.Stride(list(stride)))
        yield cs.Tensor(carrier, offset, layout), array
