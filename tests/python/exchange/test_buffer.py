# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, buffer protocol: CPU, Generic and Metal export their memory, typed, read-only and without a copy."""

import array
import ctypes
import hashlib
import struct

import carrier_storage as cs
import pytest
from handed import FORMATS, copies, library, shares

from customs import HookedCarrier
from helpers import state
from kinds import F32, I32, each


@each(shares)
def test_a_view_of_the_slots(cell):
    """One-dimensional, typed, read-only, in C order; not a version step."""
    c = cell.make(5)
    before = state(c)
    view = memoryview(c)
    assert (view.format, view.ndim, view.shape) == (FORMATS[cell.dtype], 1, (5,))
    assert view.readonly and view.c_contiguous and view.nbytes == 5 * view.itemsize
    assert view.itemsize == struct.calcsize(view.format)
    assert view.tolist() == cell.samples(5)
    assert list(view[1:4:2]) == cell.samples(5)[1:4:2]
    with pytest.raises(TypeError):
        view[0] = cell.good
    assert state(c) == before


@each(shares)
def test_no_copy(cell):
    """Zero-copy: later writes to the carrier are seen."""
    c = cell.make(3)
    one, two = memoryview(c), memoryview(c)
    value = not c[1] if cell.dtype is cs.DType.Bool else cell.good
    c[1] = value
    assert one[1] == two[1] == value
    if hasattr(c, "pointer"):
        assert (
            ctypes.addressof(ctypes.c_char.from_address(c.pointer()))
            == library("numpy").asarray(one).ctypes.data
        )


@each(shares)
def test_empty(cell):
    """No slots are a view of no slots."""
    view = memoryview(cell.make([]))
    assert (view.format, view.shape, view.nbytes, view.tolist()) == (FORMATS[cell.dtype], (0,), 0, [])


@each(shares)
def test_immutable_and_owned_carriers_are_exported_too(cell):
    """A read-only export asks nothing of mutability or ownership."""
    assert memoryview(cell.make(3, mutable=False)).tolist() == cell.samples(3)
    c = cell.make(3)
    token = c.claim()
    assert memoryview(c).tolist() == cell.samples(3)
    token.relinquish()


@each(lambda kind: kind.evictable and shares(kind))
def test_a_tier_is_exported_as_its_hierarchy_is(cell):
    """The primary of a promoted hierarchy shows the same memory."""
    h = cell.make(3)
    tier, whole = memoryview(h.primary), memoryview(h)
    h[0] = cell.good
    assert tier.tolist() == whole.tolist() == list(h)


@each(shares)
def test_writable_requests(cell):
    """BufferError that names edit()."""
    c = cell.make(3)
    with pytest.raises((BufferError, TypeError)):
        struct.pack_into("b", c, 0, 1)
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(c)
    take = ctypes.pythonapi.PyObject_GetBuffer
    take.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    with pytest.raises(BufferError, match=r"edit\(\)"):
        take(c, ctypes.create_string_buffer(256), 1)  # PyBUF_WRITABLE
    assert list(c) == cell.samples(3) and c.version == 0


@each(shares)
def test_plain_bytes(cell):
    """Who asks for bytes alone gets the bytes."""
    c = cell.make(4)
    expected = struct.pack(f"=4{FORMATS[cell.dtype]}", *cell.samples(4))
    assert bytes(c) == expected
    assert hashlib.sha256(c).digest() == hashlib.sha256(expected).digest()
    assert bytearray(c) == expected and b"".join([c]) == expected


@each(copies)
def test_who_has_no_memory(cell):
    """BufferError that says what to do instead, and nothing is read."""
    c = cell.make(3)
    for _ in range(2):
        with pytest.raises(BufferError, match=r"numpy\(\)"):
            memoryview(c)
    assert list(c) == cell.samples(3) and c.version == 0


def test_a_dtype_without_bytes():
    """A custom carrier of another dtype has nothing to hand out either."""
    with pytest.raises(BufferError):
        memoryview(HookedCarrier([1.0, 2.0], cs.DType.Float64))
    with pytest.raises(BufferError):
        bytes(HookedCarrier([object()], cs.DType.Any))


def test_what_is_no_carrier_yet():
    """A subclass that forgot super().__init__() is a TypeError that says so."""

    class Forgetful(HookedCarrier):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match="super"):
        memoryview(Forgetful())


@each(shares)
def test_a_carrier_is_a_source(cell):
    """One carrier's memory fills another, by the same rule as any typed buffer."""
    c = cell.make(5)
    twin = c.new_like(c)
    assert list(twin) == cell.samples(5) and type(twin) is type(c)
    assert list(cs.Generic(memoryview(c)[1:3], dtype=cell.dtype)) == cell.samples(5)[1:3]
    assert array.array("b", bytes(5)).tolist() == [0] * 5


def test_bool_bytes_of_others():
    """Memory that others own may hold bytes other than 0 and 1: a carrier reads them as true, its views show them."""
    memory = bytearray([0, 1, 2, 255])
    address = ctypes.addressof((ctypes.c_char * 4).from_buffer(memory))
    c = cs.CPU(4, address, dtype=cs.DType.Bool)
    assert list(c) == [False, True, True, True]
    assert bytes(c) == memory
    assert list(c.new_like(c)) == [False, True, True, True]
    assert bytes(c.new_like(c)) == bytes([0, 1, 1, 1])


@each(shares, dtypes=(F32, I32))
def test_a_consumer_that_drops_its_buffer(cell):
    """numpy.ndarray(buffer=carrier) keeps the carrier, not the buffer: its memory stays while the carrier lives."""
    np = library("numpy")
    c = cell.make([cell.good] * 1000)
    arrays = [np.ndarray(1000, NUMPY[cell.dtype], buffer=c) for _ in range(3)]
    c.release()
    others = [cell.make([cell.zero] * 1000) for _ in range(20)]
    assert len(others) == 20 and all((a == cell.good).all() and a.base is c for a in arrays)


NUMPY = {F32: "f4", I32: "i4"}
