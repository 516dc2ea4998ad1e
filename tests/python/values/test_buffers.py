# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Typed buffers against the element loop over the Python values that they stand for."""

import array
import ctypes
import sys

import carrier_storage as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from values.oracle import BOOL, CONCRETE, F32, I32, agree, bits, bulk, loop

np = pytest.importorskip("numpy")

INTEGERS = ("b", "B", "h", "H", "i", "I", "l", "L", "q", "Q")
FORMATS = ("?", *INTEGERS, "e", "f", "d")
NATIVE = "<" if sys.byteorder == "little" else ">"
FOREIGN = ">" if sys.byteorder == "little" else "<"


@st.composite
def arrays(draw):
    """Any bit pattern in any format, contiguous or not."""
    dtype = np.dtype(draw(st.sampled_from(FORMATS)))
    count = draw(st.integers(0, 30))
    raw = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    made = np.frombuffer(raw, np.uint8)
    if dtype.kind == "b":
        made = made & 1
    made = made.view(dtype)
    if draw(st.booleans()) and dtype.kind in "iu":
        made = made % 100  # else few arrays fit Int32
    return made[:: draw(st.sampled_from([1, 1, 2, 3, -1, -2]))].astype(dtype, copy=False)


def element_loop(dtype, values):
    return loop(dtype, values.tolist())


@given(st.sampled_from(CONCRETE), arrays())
def test_arrays_are_their_values(dtype, made):
    strided = np.repeat(made, 2)[::2]
    reverse = made[::-1][::-1] if made.size else made
    want = bits(element_loop(dtype, made))
    for source in (made, strided, reverse, memoryview(made)):
        assert bits(bulk(dtype, source)) == want


@pytest.mark.parametrize("code", FORMATS)
def test_negative_and_zero_strides(code):
    made = np.array([0, 1, 1, 0, 1]).astype(code)
    for source in (made[::-1], np.broadcast_to(made[1], 7), made[::-2]):
        for dtype in CONCRETE:
            assert bits(bulk(dtype, source)) == bits(element_loop(dtype, source))


def test_every_half():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    got = np.array(list(cs.CPU(0).new_like(halves)), dtype=np.float32)
    want = halves.astype(np.float32)
    same = got.view(np.uint32) == want.view(np.uint32)
    assert np.all(same | (np.isnan(got) & np.isnan(want)))


@pytest.mark.parametrize("code", INTEGERS)
def test_integers_at_the_borders(code):
    info = np.iinfo(code)
    for value in {info.min, info.max, 0, max(info.min, -(2**31)), min(info.max, 2**31 - 1)}:
        agree(I32, lambda value=value: np.array([0, value], code))
        agree(F32, lambda value=value: np.array([value], code))
    for value in (2**31, -(2**31) - 1):
        if info.min <= value <= info.max:
            with pytest.raises(OverflowError, match=rf"\b5000\b.*{value}"):
                cs.CPU(0, dtype=I32).new_like(np.array([0] * 5000 + [value], code))


def test_large_integers_round_once():
    value = 2**54 - 2**29 - 1
    for code in ("q", "Q"):
        assert cs.CPU(0).new_like(np.array([value], code))[0] == 2.0**54 - 2.0**30
    assert cs.CPU(0).new_like(np.array([2**64 - 1], "Q"))[0] == 2.0**64


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 16384, 300_000])
def test_sizes_around_the_chunks(size):
    base = (np.arange(size) * 40503) % 2**32 - 2**31
    assert np.array_equal(list(cs.CPU(0, dtype=I32).new_like(base)), base)
    assert np.array_equal(list(cs.CPU(0).new_like(base / 7)), (base / 7).astype(np.float32))
    assert np.array_equal(list(cs.CPU(0, dtype=BOOL).new_like(base % 3 == 0)), base % 3 == 0)
    if size:
        base[-1] = 2**31
        with pytest.raises(OverflowError, match=rf"\b{size - 1}\b"):
            cs.CPU(0, dtype=I32).new_like(base)


def test_type_errors_and_empty_buffers():
    for code, dtype in (("d", I32), ("?", I32), ("e", I32), ("i", BOOL), ("f", BOOL)):
        assert list(cs.CPU(0, dtype=dtype).new_like(np.array([], code))) == []
        with pytest.raises(TypeError, match=r"\b0\b"):
            cs.CPU(0, dtype=dtype).new_like(np.array([1], code))
    assert list(cs.CPU(0).new_like(np.array([True, False]))) == [1.0, 0.0]


def test_prefixes_that_mean_native_order():
    data = array.array("i", [1, -2, 3]).tobytes()
    for code in ("i", "@i"):
        assert list(cs.CPU(0, dtype=I32).new_like(memoryview(data).cast(code))) == [1, -2, 3]
    for dtype in (np.dtype(NATIVE + "i4"), np.dtype("=i4")):
        assert list(cs.CPU(0, dtype=I32).new_like(np.array([1, -2, 3], dtype))) == [1, -2, 3]
    ctypes_array = (ctypes.c_int32 * 3)(1, -2, 3)  # its format has the prefix
    assert memoryview(ctypes_array).format == NATIVE + "i"
    assert list(cs.CPU(0, dtype=I32).new_like(ctypes_array)) == [1, -2, 3]


def test_other_buffers_are_iterated():
    swapped = np.array([1, -2, 3], FOREIGN + "i4")
    assert list(cs.CPU(0, dtype=I32).new_like(swapped)) == [1, -2, 3]
    assert list(cs.CPU(0).new_like(np.array([1, 2.5, None], object))) == [1.0, 2.5, 0.0]
    assert cs.CPU(0).new_like(np.array([0.1], np.longdouble))[0] == np.float32(0.1)
    for bad in (
        np.zeros((2, 2)),
        np.array(["1"]),
        np.array([1j]),
        np.array([1j], np.complex64),
        np.zeros(2, [("a", "f4")]),
        np.zeros((2, 2), FOREIGN + "f4"),
    ):
        with pytest.raises(TypeError):
            cs.CPU(0).new_like(bad)
    with pytest.raises(TypeError):
        cs.CPU(0).new_like(np.array(1.0))


def test_bytes_are_integers():
    for source in (b"\x01\xff", bytearray(b"\x01\xff"), memoryview(b"\x01\xff")):
        assert list(cs.CPU(0, dtype=I32).new_like(source)) == [1, 255]


def test_the_buffer_is_given_back():
    for values, dtype in (
        (array.array("d", [1.0]), F32),
        (array.array("d", [1.0]), I32),
        (array.array("q", [2**40]), I32),
    ):
        bulk(dtype, values)
        values.append(values[0])  # a BufferError while the buffer is held


def test_a_released_memoryview():
    view = memoryview(b"12")
    view.release()
    with pytest.raises(ValueError):
        cs.CPU(0).new_like(view)


def test_bool_bytes_other_than_zero_and_one():
    raw = np.frombuffer(bytes([0, 1, 2, 255]), np.bool_)
    assert list(cs.CPU(0, dtype=BOOL).new_like(raw)) == [False, True, True, True]
    assert list(cs.CPU(0).new_like(raw)) == [0.0, 1.0, 1.0, 1.0]
