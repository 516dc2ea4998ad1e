# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: CPU owns or wraps typed host storage."""

import array
import ctypes

import carrier_storage as cs
import pytest

from customs import IndexLike
from helpers import values

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
ZEROS = [(F32, 0.0), (I32, 0), (BOOL, False)]


@pytest.mark.parametrize(("dtype", "zero"), ZEROS)
def test_create_initialized_owned_storage(dtype, zero):
    """Scenario: Create initialized owned CPU storage, after memory was used and given back too."""
    for n in (0, 1, 5, 1000):
        used = cs.CPU(n, dtype=dtype)
        for i in range(n):
            used[i] = True if dtype is BOOL else 1
        used.release()
        fresh = cs.CPU(n, dtype=dtype, empty=False)
        assert values(fresh) == [zero] * n and all(type(v) is type(zero) for v in values(fresh))


def test_defaults():
    """pointer None, mutable True, dtype Float32, empty False."""
    c = cs.CPU(2)
    assert (c.dtype(), c.is_mutable(), values(c), c.version) == (F32, True, [0.0, 0.0], 0)
    assert not c.is_owned() and not c.is_released()
    assert cs.CPU(2, None, mutable=True, dtype=F32, empty=False).size() == 2
    assert cs.CPU(size=2, pointer=None).size() == 2


def test_mutable_false_is_for_good():
    """mutable states the carrier's intrinsic mutability."""
    c = cs.CPU(2, mutable=False)
    assert not c.is_mutable()
    with pytest.raises(RuntimeError):
        c[0] = 1.0


@pytest.mark.parametrize("dtype", [F32, I32, BOOL])
def test_empty_storage_can_be_written_then_read(dtype):
    """empty=True may skip initialization: every slot is written before it is read."""
    c = cs.CPU(100, dtype=dtype, empty=True)
    for i in range(100):
        c[i] = (i % 2 == 0) if dtype is BOOL else i
    assert values(c) == [(i % 2 == 0) if dtype is BOOL else i for i in range(100)]


def test_size_is_an_integer():
    """size that is not an integer: TypeError; negative: ValueError; decision D: anything with __index__."""
    for other in (1.0, "3", None, [3], 2j):
        with pytest.raises(TypeError):
            cs.CPU(other)
    for negative in (-1, -(2**31), -(2**63), -(2**70), IndexLike(-1)):
        with pytest.raises(ValueError):
            cs.CPU(negative)
    assert cs.CPU(IndexLike(3)).size() == 3
    assert cs.CPU(True).size() == 1
    with pytest.raises(TypeError):
        cs.CPU()


def test_too_large_is_a_memory_error():
    """Decision D: an allocation too large for memory is a MemoryError; nothing aborts."""
    for size in (2**46, 2**60, 2**62, 2**63 - 1, 2**63, 2**64, 2**70):
        for dtype in (F32, BOOL):
            with pytest.raises(MemoryError):
                cs.CPU(size, dtype=dtype)
            with pytest.raises(MemoryError):
                cs.CPU(size, dtype=dtype, empty=True)


def test_flags_are_exact_bools():
    """Decision D: mutable and empty are exact bools, else TypeError."""
    for other in (0, 1, None, "True", 1.0):
        with pytest.raises(TypeError):
            cs.CPU(1, mutable=other)
        with pytest.raises(TypeError):
            cs.CPU(1, empty=other)
    with pytest.raises(TypeError):
        cs.CPU(1, None, True)
    with pytest.raises(TypeError):
        cs.CPU(1, colour="red")


@pytest.mark.parametrize(
    ("dtype", "code", "start"),
    [(F32, "f", [1.5, -2.0, 0.25]), (I32, "i", [1, -2, 2**31 - 1]), (BOOL, "B", [1, 0, 1])],
)
def test_wrap_external_memory(dtype, code, start):
    """Scenario: Wrap external memory: read and written in place, not initialized, not owned."""
    memory = array.array(code, start)
    address = memory.buffer_info()[0]
    c = cs.CPU(3, address, dtype=dtype)
    assert c.pointer() == address
    assert values(c) == start and memory.tolist() == start
    c[1] = True if dtype is BOOL else 7
    assert memory[1] == (1 if dtype is BOOL else 7)
    memory[0] = 0
    assert c[0] == 0
    c.release()
    assert memory[2] == start[2] and memory[1] != start[1]


def test_empty_does_not_alter_external_memory():
    """empty shall not alter external memory, whichever way it is given."""
    memory = array.array("i", [5, 6])
    for empty in (True, False):
        c = cs.CPU(2, pointer=memory.buffer_info()[0], dtype=I32, empty=empty)
        assert values(c) == [5, 6]
        del c
    assert memory.tolist() == [5, 6]


def test_external_memory_is_not_freed():
    """CPU wraps the address without taking ownership: dropping and releasing leave it alone."""
    buffer = ctypes.create_string_buffer(b"\x00\x00\x80\x3f" * 4, 16)
    for end in (lambda c: c.release(), lambda c: None):
        c = cs.CPU(4, ctypes.addressof(buffer))
        assert values(c) == [1.0] * 4
        end(c)
        del c
    assert buffer.raw == b"\x00\x00\x80\x3f" * 4


def test_external_bool_bytes_other_than_one():
    """Wrapped Bool memory is not changed by reading, and any non-zero byte reads True."""
    memory = (ctypes.c_uint8 * 5)(0, 1, 2, 128, 255)
    c = cs.CPU(5, ctypes.addressof(memory), dtype=BOOL)
    assert values(c) == [False, True, True, True, True]
    assert all(type(v) is bool for v in values(c))
    assert bytes(memory) == bytes([0, 1, 2, 128, 255])


def test_pointer_is_a_positive_integer():
    """Another type: TypeError; non-positive: ValueError. Decision D: an exact int, so bool is refused."""
    for other in (1.5, "4096", b"x", [4096], IndexLike(4096), True, False):
        with pytest.raises(TypeError):
            cs.CPU(1, other)
    for number in (0, -1, -(2**70)):
        with pytest.raises(ValueError):
            cs.CPU(1, pointer=number)
    for number in (2**64, 2**70, 10**5000):  # the last has more digits than Python prints
        with pytest.raises(ValueError, match="64 bits"):
            cs.CPU(1, pointer=number)
    assert cs.CPU(0, 4096).pointer() == 4096


def test_pointer_is_the_address_of_the_storage():
    """pointer() returns the positive integer address used by the carrier."""
    for dtype, kind in ((F32, ctypes.c_float), (I32, ctypes.c_int32), (BOOL, ctypes.c_uint8)):
        c = cs.CPU(3, dtype=dtype)
        c[1] = True if dtype is BOOL else 3
        address = c.pointer()
        assert type(address) is int and address > 0
        assert list((kind * 3).from_address(address)) == values(c)
        (kind * 3).from_address(address)[2] = 1
        assert c[2] == 1
    assert cs.CPU(0).pointer() > 0


def test_immutable_external_memory_is_read_only():
    """mutable=False holds for wrapped memory as well."""
    memory = array.array("f", [1.0])
    c = cs.CPU(1, memory.buffer_info()[0], mutable=False)
    with pytest.raises(RuntimeError):
        c[0] = 2.0
    assert memory[0] == 1.0


def test_invalid_typed_writes_fail_before_the_slot_changes():
    """Float32 binary32, Int32 in-range integers, Bool a Python bool."""
    for dtype, start, bad in (
        (F32, 1.5, ["1", None, 1j, b"1"]),
        (I32, 7, [1.0, 2**31, -(2**31) - 1, True, None]),
        (BOOL, True, [0, 1, 0.0, None, "True"]),
    ):
        c = cs.CPU(1, dtype=dtype)
        c[0] = start
        for value in bad:
            with pytest.raises((TypeError, OverflowError)):
                c[0] = value
            with pytest.raises((TypeError, OverflowError)):
                c.set_value(0, value)
        assert c[0] == start and c.version == 1
