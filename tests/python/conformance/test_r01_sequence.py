# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Carrier exposes one homogeneous storage sequence."""

import pytest

from customs import IndexLike
from helpers import state, values
from kinds import each, each_kind

READS = [lambda c, i: c[i], lambda c, i: c.get_value(i)]
NOT_INDICES = [1.0, "0", None, [0], slice(0, 1), ..., b"0", 1j, (0,), object()]
OUTSIDE = [-1, 3, 4, -(2**31), 2**31, 2**32, -(2**63), 2**63, 2**64 + 1, 2**70, -(2**70), 10**40]


def writes(cell):
    return [lambda c, i: c.__setitem__(i, cell.good), lambda c, i: c.set_value(i, cell.good)]


@each()
def test_size_and_dtype(cell):
    """size() is the non-negative number of slots; dtype() the one descriptor."""
    for n in (0, 1, 3, 8):
        c = cell.make(n)
        assert (c.size(), type(c.size())) == (n, int)
        assert c.dtype() is cell.dtype


@each()
def test_read_and_write_one_slot(cell):
    """Scenario: Read and write one slot."""
    c = cell.make(3)
    start = cell.samples(3)
    assert values(c) == start == [c[i] for i in range(3)]
    for i in range(3):
        c[i] = cell.good
        assert values(c) == [cell.good] * (i + 1) + start[i + 1 :]
    for i in range(3):
        c.set_value(i, start[i])
        assert c[i] == c.get_value(i) == start[i]


@each()
def test_writes_return_none_and_reads_give_the_exact_type(cell):
    """set_value returns None. Decision C: reads give exactly float, int, bool."""
    c = cell.make(3)
    assert c.set_value(0, cell.good) is None
    assert c.set_value(index=1, value=cell.good) is None
    assert c.get_value(index=1) == cell.good
    assert {type(v) for v in [c[0], c[2], c.get_value(0)]} == {cell.type}
    if cell.type is bool:
        assert c[0] is True


@each()
def test_reject_an_invalid_physical_index(cell):
    """Scenario: Reject an invalid physical index. Decision D: of any magnitude."""
    c = cell.make(3)
    before = state(c)
    for index in OUTSIDE:
        for access in READS + writes(cell):
            with pytest.raises(IndexError):
                access(c, index)
            with pytest.raises(IndexError):
                access(c, IndexLike(index))
    assert state(c) == before


@each()
def test_empty_storage_has_no_valid_index(cell):
    """[0, size()) is empty when size() is 0."""
    c = cell.make(0)
    for access in READS + writes(cell):
        with pytest.raises(IndexError):
            access(c, 0)


@each_kind()
def test_what_does_not_support_the_index_protocol_is_a_type_error(cell):
    """index is interpreted through Python's integer-index protocol, else TypeError."""
    c = cell.make(3)
    before = state(c)
    for index in NOT_INDICES:
        for access in READS + writes(cell):
            with pytest.raises(TypeError):
                access(c, index)
    assert state(c) == before


@each_kind()
def test_whatever_supports_the_index_protocol_is_an_index(cell):
    """index is interpreted through Python's integer-index protocol; decision D: bool is an integer there."""
    c = cell.make(3)
    for access in READS:
        assert access(c, IndexLike(2)) == c[2]
        assert access(c, True) == c[1]
    for access in writes(cell):
        d = cell.make(3)
        access(d, IndexLike(2))
        assert values(d) == [*cell.samples(2), cell.good]
        access(d, False)
        assert d[0] == cell.good


@each_kind()
def test_numpy_integers_are_indices(cell):
    """Decision D: anything with __index__, NumPy's included."""
    np = pytest.importorskip("numpy")
    c = cell.make(3)
    for scalar in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64):
        assert c[scalar(2)] == c.get_value(scalar(2)) == c[2]
        with pytest.raises(IndexError):
            c[scalar(3)]
    assert c[np.array(1)] == c[1]  # a 0-d integer array has __index__
    for other in (np.float32(1), np.bool_(True), np.array([1]), np.array(1.0)):
        with pytest.raises(TypeError):
            c[other]


@each_kind()
def test_an_error_of_the_index_passes_through(cell):
    """User code that runs inside a call may raise; the call changes nothing."""
    c = cell.make(3)
    before = state(c)

    def fail():
        raise KeyError("mine")

    for access in READS + writes(cell):
        with pytest.raises(KeyError, match="mine"):
            access(c, IndexLike(0, fail))
        with pytest.raises(TypeError):
            access(c, IndexLike("not an int"))
    assert state(c) == before


@each_kind()
def test_slots_cannot_be_deleted(cell):
    """The sequence has a fixed number of slots."""
    c = cell.make(3)
    with pytest.raises((TypeError, AttributeError)):
        del c[0]
    assert values(c) == cell.samples(3)


@each()
def test_a_write_to_an_immutable_carrier_is_a_runtime_error(cell):
    """A write to a carrier that is not publicly mutable fails before the slot changes."""
    c = cell.make(3, mutable=False)
    before = state(c)
    for access in writes(cell):
        with pytest.raises(RuntimeError):
            access(c, 0)
    assert state(c) == before
