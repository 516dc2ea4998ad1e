# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions C: one-dimensional typed buffers stand for the Python values that their format stands for."""

import array
import struct

import carrier_storage as cs
import numpy as np
import pytest

from helpers import state, values
from kinds import BOOL, F32, I32, each, each_kind
from reference import normalize

# Format, what may be in it.
FORMATS = {
    "?": [True, False, True],
    "b": [-128, 127, 0],
    "B": [0, 255, 7],
    "h": [-(2**15), 2**15 - 1, 3],
    "H": [2**16 - 1, 0, 5],
    "i": [-(2**31), 2**31 - 1, 16777217],
    "I": [2**32 - 1, 0, 2**31],
    "l": [-(2**63), 2**63 - 1, 2**54 - 2**29 - 1],
    "L": [2**64 - 1, 0, 1],
    "q": [-(2**63), 2**63 - 1, 2**54 - 2**29 - 1],
    "Q": [2**64 - 1, 2**31, 1],
    "e": [0.5, -0.0, 65504.0],
    "f": [0.1, -0.0, 1e-40],
    "d": [0.1, 1e300, -1e-320],
}


def buffer(code, items):
    """A one-dimensional memoryview of that format."""
    packed = struct.pack(f"{len(items)}{code}", *items)
    return memoryview(packed).cast(code)


def expected(items, dtype):
    """What the element loop over the values gives: the stored values, or the error of the first that fails."""
    try:
        return [normalize(v, dtype) for v in items]
    except (TypeError, OverflowError) as error:
        return type(error)


def check(cell, source, items):
    want = expected(items, cell.dtype)
    c = cell.make(1)
    makers = [c.new_like, c.allocate_like(0).new_like, cell.make(1, mutable=False).new_like]
    if cell.kind.name == "generic":
        makers.append(lambda v: cs.Generic(v, dtype=cell.dtype))
    for make in makers:
        if isinstance(want, type):
            with pytest.raises(want):
                make(source)
        else:
            assert [repr(v) for v in make(source)] == [repr(v) for v in want]


@each()
@pytest.mark.parametrize("code", FORMATS)
def test_memoryviews(cell, code):
    """Formats ?, b to Q, e, f, d, native order: the elements are Python values, and follow the same table."""
    if code in "e":
        pytest.importorskip("numpy")  # memoryview.cast knows no half floats before Python 3.12
        items, source = FORMATS[code], __import__("numpy").array(FORMATS[code], "float16")
    else:
        source = buffer(code, FORMATS[code])
        items = source.tolist()
    check(cell, source, items)
    check(cell, source[:0], [])
    check(cell, source[1:], items[1:])
    check(cell, source[::-1], items[::-1])
    check(cell, source[::2], items[::2])


@each()
@pytest.mark.parametrize("code", [c for c in FORMATS if c not in "?e"])
def test_arrays(cell, code):
    """array.array is such a buffer."""
    source = array.array(code, FORMATS[code])
    check(cell, source, source.tolist())


@each_kind()
def test_bytes_are_unsigned_integers(cell):
    """bytes and bytearray are buffers of format B."""
    for dtype in cell.kind.dtypes:
        other = type(cell)(cell.kind, dtype)
        for source in (b"\x01\xff", bytearray(b"\x00\x07")):
            check(other, source, list(source))


@each_kind()
def test_the_range_is_checked_wherever_the_culprit_is(cell):
    """Integer arrays are ints with their range checked: at any position, in any length."""
    other = type(cell)(cell.kind, I32)
    for code, beyond in (("q", 2**31), ("q", -(2**31) - 1), ("I", 2**31), ("Q", 2**63), ("Q", 2**32)):
        for n in (1, 2, 7, 64, 5000):
            for position in {0, n // 2, n - 1}:
                items = [5] * n
                items[position] = beyond
                c = other.make(1)
                before = state(c)
                with pytest.raises(OverflowError):
                    c.new_like(buffer(code, items))
                assert state(c) == before
    edges = [-(2**31), 2**31 - 1] * 100
    assert values(other.make(1).new_like(buffer("q", edges))) == edges


@each_kind()
def test_long_buffers_equal_the_element_loop(cell):
    """The result is what the element loop over those values gives."""
    for code in "bBhHiIqQfd":
        if code in "fd":
            items = array.array(code, [i * 0.37 - 900 for i in range(5001)]).tolist()
        else:
            items = [(i * 7919) % (2**7 - 1) for i in range(5001)]
        c = type(cell)(cell.kind, F32).make(1)
        assert values(c.new_like(array.array(code, items))) == values(c.new_like(items))


@each_kind()
def test_numpy_arrays(cell):
    """NumPy arrays: bool into Float32 1.0 / 0.0 and into Int32 TypeError; floats into Int32 TypeError."""
    np = pytest.importorskip("numpy")
    for dtype in cell.kind.dtypes:
        other = type(cell)(cell.kind, dtype)
        for name in (
            "bool",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float16",
            "float32",
            "float64",
        ):
            source = np.array([1, 0, 1, 1], dtype=name)
            check(other, source, source.tolist())
            check(other, source[::2], source[::2].tolist())
            check(other, source[::-1], source[::-1].tolist())
            check(other, np.broadcast_to(source[:1], 5), source[:1].tolist() * 5)
        read_only = np.arange(4, dtype="int32")
        read_only.flags.writeable = False
        check(other, read_only, read_only.tolist())


@each_kind()
def test_prefixes_of_native_order(cell):
    """Native order, with and without the prefix that says so; misaligned memory is read safely."""
    np = pytest.importorskip("numpy")
    native = "<" if struct.pack("=H", 1)[0] else ">"
    raw = np.zeros(33, "uint8")
    raw[1:] = np.frombuffer(np.array([1, -2, 3, 4], "int64").tobytes(), "uint8")
    for order in ("=", native):
        source = np.array([1.5, -2.5], dtype=order + "f8")
        check(type(cell)(cell.kind, F32), source, source.tolist())
    check(type(cell)(cell.kind, I32), raw[1:].view("int64"), [1, -2, 3, 4])
    check(type(cell)(cell.kind, F32), raw[1:].view("int64"), [1, -2, 3, 4])


@each_kind()
def test_other_buffers_are_iterated(cell):
    """Other buffers (structured, byte-swapped, object, more dimensions) are iterated like any iterable."""
    np = pytest.importorskip("numpy")
    swapped = ">" if struct.pack("=H", 1)[0] else "<"
    f32, i32 = (type(cell)(cell.kind, d) for d in (F32, I32))
    check(f32, np.array([1.5, 0.1], dtype=swapped + "f8"), [1.5, 0.1])
    check(i32, np.array([1, -2], dtype=swapped + "i4"), [1, -2])
    check(i32, np.array([1, 2**40], dtype=swapped + "i8"), [1, 2**40])
    check(f32, np.array([1, 2.5, True], dtype=object), [1, 2.5, True])
    if cell.kind.holes:
        assert values(f32.make(1).new_like(np.array([None, 1.0], dtype=object))) == [0.0, 1.0]
    for bad in (
        np.zeros((2, 2)),
        np.zeros(2, dtype="i4,f4"),
        np.array(["1"]),
        np.array([1j]),
        np.zeros(2, "M8[s]"),
    ):
        with pytest.raises(TypeError):
            f32.make(1).new_like(bad)
    with pytest.raises(TypeError):
        f32.make(1).new_like(np.array(1.0))  # zero dimensions: not iterable
    with pytest.raises((TypeError, NotImplementedError)):
        f32.make(1).new_like(memoryview(bytes(4)).cast("B", (2, 2)))


def test_a_released_buffer():
    """A source that was given up is the caller's error and never unsafe."""
    view = memoryview(bytes(4))
    view.release()
    with pytest.raises(ValueError):
        cs.CPU(1).new_like(view)


def test_the_buffer_is_given_back():
    """The source is held only while it is read."""
    source = array.array("f", [1.0, 2.0])
    cs.CPU(1).new_like(source)
    cs.Generic(source, dtype=F32)
    with pytest.raises(TypeError):
        cs.CPU(1, dtype=I32).new_like(source)
    source.append(3.0)  # would be a BufferError while exported
    assert len(source) == 3


def test_ranges_are_exact():
    """A range is iterated exactly, huge members included."""
    assert list(cs.CPU(1, dtype=I32).new_like(range(-3, 10, 4))) == [-3, 1, 5, 9]
    assert list(cs.CPU(1, dtype=I32).new_like(range(5, 0, -2))) == [5, 3, 1]
    got = list(cs.CPU(1).new_like(range(2**54 - 2**29 - 1, 2**54 - 2**29 + 2)))
    assert got == [normalize(v, F32) for v in range(2**54 - 2**29 - 1, 2**54 - 2**29 + 2)]
    for bad in (range(2**31 - 2, 2**31 + 1), range(-(2**31) - 1, -(2**31) + 2), range(2**70, 2**70 + 2)):
        with pytest.raises(OverflowError):
            cs.CPU(1, dtype=I32).new_like(bad)
    assert list(cs.CPU(1).new_like(range(2**100, 2**100 + 2))) == [2.0**100] * 2
    with pytest.raises(OverflowError):
        cs.CPU(1).new_like(range(10**400, 10**400 + 2))
    with pytest.raises(TypeError):
        cs.CPU(1, dtype=BOOL).new_like(range(2))
    assert list(cs.CPU(1, dtype=BOOL).new_like(range(0))) == []


@pytest.mark.parametrize("step", [1, 2])
def test_large_buffers(step):
    """Millions of elements, which several threads convert, give the same values; the first bad one is named."""
    count = 3_000_001
    source = (np.arange(step * count, dtype=np.int64) * 7919 % 2**31)[::step]
    made = cs.CPU(1, dtype=I32).new_like(source)
    assert np.array_equal(np.frombuffer(made, np.int32), source.astype(np.int32))
    assert np.array_equal(np.frombuffer(cs.CPU(1).new_like(source), np.float32), source.astype(np.float32))
    ready = (source % 2**20).astype(np.float32)
    for onto in (cs.FileBacked(dtype=F32), cs.Evictable(cs.FileBacked(dtype=F32).new_like([0.0]), cs.CPU(1))):
        assert np.array_equal(onto.new_like(np.repeat(ready, 2)[::step]).numpy(), np.repeat(ready, 2)[::step])
        assert np.array_equal(onto.new_like(source).numpy(), source.astype(np.float32))
    flags = source % 3 == 0
    assert np.array_equal(np.frombuffer(cs.CPU(1, dtype=BOOL).new_like(flags), np.bool_), flags)
    with pytest.raises(TypeError, match="value 0: an Int32 slot takes an int, not float"):
        made.new_like(source.astype(np.float64))
    for bad in (2_999_999, 1_700_000, 262_145, 3):
        source[bad] = 2**40
        with pytest.raises(OverflowError, match=f"value {bad}: "):
            made.new_like(source)
