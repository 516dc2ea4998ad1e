# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions A: Tensor, one subtensor."""

import carrier_storage as cs
import pytest
from carrier_storage import Layout, Shape, Stride, Tensor

from customs import IndexLike
from helpers import line, state, tensor, values
from kinds import each, each_kind, is_evictable


@each()
def test_a_tensor_is_a_view(cell):
    """.carrier .offset .layout .version .size() .dtype() .is_mutable(); it never copies."""
    c = cell.make(6)
    layout = Layout(Shape(2, 2), Stride(2, 1))
    t = Tensor(c, 1, layout)
    assert t.carrier is c and t.offset == 1 and t.layout == layout
    assert (t.size(), t.dtype(), t.version, t.is_mutable()) == (4, cell.dtype, 0, True)
    assert [t[i] for i in range(4)] == [c[1 + layout.index(i)] for i in range(4)]
    c[1] = cell.good
    assert t[0] == cell.good and t.version == c.version == 1
    t[3] = cell.good
    assert c[4] == cell.good and t.version == c.version == 2
    assert Tensor(carrier=c, offset=0, layout=layout).carrier is c


@each()
def test_keys_are_those_of_layout_index(cell):
    """t[key], t[key] = value with the keys of layout.index (several keys: one coordinate)."""
    c = cell.make(6)
    t = Tensor(c, 0, Layout(Shape(2, 3), Stride(3, 1)))
    assert t[1, 2] == t[[1, 2]] == t[(1, 2)] == t[5] == c[5]
    assert t[IndexLike(1), 0] == c[3]
    t[1, 1] = cell.good
    assert c[4] == cell.good
    for key in (6, -1, 2**70, (2, 0), (0, 3), (0, 0, 0)):
        with pytest.raises(ValueError):
            t[key]
        with pytest.raises(ValueError):
            t[key] = cell.good
    for key in (1.0, None, "0", (0, 1.0), slice(0, 1)):
        with pytest.raises(TypeError):
            t[key]
        with pytest.raises(TypeError):
            t[key] = cell.good
    assert c.version == 1


def test_nested_keys():
    """A coordinate tree, an integer for any whole mode, through a Tensor."""
    c = cs.CPU(0, dtype=cs.DType.Int32).new_like(range(24))
    t = Tensor(c, 0, Layout(Shape(2, [3, 4]), Stride(12, [4, 1])))
    assert t[1, [2, 3]] == t[1, (2, 3)] == t[1, 2 + 3 * 3] == 23
    zero = Tensor(c, 5, Layout(Shape(), Stride()))
    assert (zero[0], zero[()], zero[[]], zero.size()) == (5, 5, 5, 1)


@each_kind()
def test_construction_checks(cell):
    """offset not an integer: TypeError; negative or beyond: ValueError; released carrier: RuntimeError."""
    c = cell.make(4)
    before = state(c)
    for bad in (1.0, None, "0", [0]):
        with pytest.raises(TypeError):
            Tensor(c, bad, line(1))
    for bad in (-1, 4, 2**31, 2**63 - 1, 2**63, 2**70, -(2**70)):
        with pytest.raises(ValueError):
            Tensor(c, bad, line(1))
    with pytest.raises(ValueError):
        Tensor(c, 1, line(4))
    with pytest.raises(ValueError):
        Tensor(c, 0, line(3, 2))
    for args in ((None, 0, line(1)), ([1], 0, line(1)), (c, 0, None), (c, 0, Shape(1)), (c, line(1)), (c,)):
        with pytest.raises(TypeError):
            Tensor(*args)
    assert Tensor(c, 2, line(1, 100)).size() == 1  # cosize counts, not the stride
    assert Tensor(c, True, line(3)).offset == 1
    assert Tensor(c, IndexLike(3), line(1)).offset == 3
    assert state(c) == before
    c.release()
    with pytest.raises(RuntimeError):
        Tensor(c, 0, line(1))
    for args in ((c, 1.0, line(1)), (c, 0, None)):  # the type comes before the state
        with pytest.raises(TypeError):
            Tensor(*args)


@each()
def test_writes_follow_the_carriers_rules(cell):
    """One rule for every path in: value, mutability, ownership, version."""
    c = cell.make(3)
    t = tensor(c)
    with pytest.raises(TypeError):
        t[0] = object()
    assert c.version == 0
    token = c.claim()
    assert not t.is_mutable()
    with pytest.raises(RuntimeError):
        t[0] = cell.good
    with token.access():
        t[0] = cell.good
    token.relinquish()
    assert c[0] == cell.good and t.is_mutable()
    frozen = tensor(cell.make(3, mutable=False))
    assert not frozen.is_mutable()
    with pytest.raises(RuntimeError):
        frozen[0] = cell.good


@each()
def test_after_release(cell):
    """A Tensor over a released carrier answers what the carrier answers, and fails as it does."""
    c = cell.make(3)
    t = tensor(c)
    c.release()
    for call in (lambda: t[0], lambda: t.__setitem__(0, cell.good)):
        with pytest.raises(RuntimeError):
            call()
    assert t.dtype() is cell.dtype and t.carrier is c and t.version == 0


@each(is_evictable)
def test_over_an_evicted_hierarchy(cell):
    """It may be built over an evicted hierarchy; its reads and writes then fail as the carrier's do."""
    h = cell.evicted(3)
    t = tensor(h, 3)
    for call in (lambda: t[0], lambda: t.__setitem__(0, cell.good)):
        with pytest.raises(RuntimeError, match="promote"):
            call()
    with pytest.raises(ValueError):
        tensor(h, 4)
    h.promote()
    assert [t[i] for i in range(3)] == cell.samples(3)
    t[0] = cell.good
    h.evict()
    h.promote()
    assert t[0] == cell.good and values(h)[0] == cell.good


@each_kind()
def test_a_tensor_keeps_its_carrier(cell):
    """A view holds its carrier."""
    t = tensor(cell.make(3))
    assert [t[i] for i in range(3)] == cell.samples(3)
    assert t.carrier.size() == 3


def test_stride_zero_and_overlaps():
    """Views may repeat slots; a write goes to the one slot."""
    c = cs.CPU(3, dtype=cs.DType.Int32)
    t = Tensor(c, 1, Layout(Shape(4), Stride(0)))
    t[3] = 9
    assert [t[i] for i in range(4)] == [9] * 4 and values(c) == [0, 9, 0]
    huge = Tensor(c, 0, Layout(Shape(2**62), Stride(0)))
    assert huge.size() == 2**62 and huge[2**62 - 1] == 0
