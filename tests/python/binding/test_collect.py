# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Garbage collection: cycles through the library's own references are found, and nothing alive is cleared."""

import array
import gc
import sys
import weakref

import pytest
from carrier_storage import CPU, Carrier, DType, Evictable, FileBacked, Generic, Layout, Shape, Stride, Tensor


class Slots(Carrier):
    """A custom carrier, which has a __dict__ and so can be part of a cycle."""

    def __init__(self, size=2):
        super().__init__()
        self.values = [0.0] * size

    def _size(self):
        return len(self.values)

    def _dtype(self):
        return DType.Float32

    def _get_value(self, index):
        return self.values[index]

    def _set_value(self, index, value):
        self.values[index] = value

    def _new_like(self, values, mutable, dtype):
        fresh = Slots(0)
        fresh.values = values
        return fresh

    def _allocate_like(self, size, mutable, dtype, empty):
        return Slots(size)


LINE = Layout(Shape(2), Stride(1))


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def collected(reference):
    assert reference() is not None
    gc.collect()
    return reference() is None


def test_cycle_of_a_custom_carrier():
    c = Slots()
    c.me = c
    gone = weakref.ref(c)
    del c
    assert collected(gone)


@pytest.mark.parametrize("upper", [True, False])
def test_cycle_through_a_tier(upper):
    c = Slots()
    c.hierarchy = Evictable(c, CPU(2)) if upper else Evictable(CPU(2), c)
    gone = weakref.ref(c)
    del c
    assert collected(gone)


def test_cycle_through_nested_hierarchies():
    c = Slots()
    c.hierarchy = Evictable(Evictable(c, CPU(2)), CPU(2))
    gone = weakref.ref(c)
    del c
    assert collected(gone)


def test_cycle_through_a_hierarchy_that_only_cpp_holds():
    """A factory makes the nested tier, and Python never sees it: the collector has to look through it."""
    prototype = Evictable(Evictable(Slots(), CPU(2)), CPU(2))
    made = prototype.new_like([1.0, 2.0])
    inner = made.primary.primary
    inner.hierarchy = made
    gone = weakref.ref(inner)
    del inner, made
    assert collected(gone)

    fresh = prototype.allocate_like(2)
    seen = []

    class Probe(Slots):
        def _allocate_like(self, size, mutable, dtype, empty):
            seen.append(Probe(size))
            return seen[-1]

    prototype = Evictable(Evictable(Probe(), CPU(2)), CPU(2))
    fresh = prototype.allocate_like(2)
    bottom = seen.pop()
    bottom.hierarchy = fresh  # the tier between them has no Python object
    gone = weakref.ref(bottom)
    del bottom, fresh
    assert collected(gone)


def test_cycle_through_a_token_and_its_scope():
    c = Slots()
    c.token = c.claim()
    gone = weakref.ref(c)
    del c
    assert collected(gone)
    c = Slots()
    c.scope = c.claim().access()
    gone = weakref.ref(c)
    del c
    assert collected(gone)


def test_cycle_through_tensors():
    c = Slots()
    c.tensors = [Tensor(c, 0, LINE), Tensor(c, 0, LINE)]
    gone = weakref.ref(c)
    del c
    assert collected(gone)


def test_cycle_through_an_iterator():
    c = Slots()
    c.it = iter(c)
    gone = weakref.ref(c)
    del c
    assert collected(gone)


def test_the_living_are_not_cleared():
    """Several references from garbage to one carrier that a variable still holds."""
    c = Slots()
    h = Evictable(CPU(2).new_like([1.0, 2.0]), CPU(2))
    garbage = [Tensor(c, 0, LINE), Tensor(c, 0, LINE), Tensor(h, 0, LINE), iter(h)]
    garbage.append(garbage)
    del garbage
    gc.collect()
    assert not c.is_released()
    assert not h.is_released()
    assert list(h) == [1.0, 2.0]
    assert list(c) == [0.0, 0.0]


def test_a_dropped_hierarchy_gives_its_tiers_back():
    top, bottom = CPU(2), FileBacked(dtype=DType.Float32)
    h = Evictable(top, bottom)
    del h
    assert not top.is_owned()
    assert not bottom.is_owned()
    assert not top.is_released()


def test_a_dropped_token_gives_its_carrier_back():
    c = CPU(1)
    token = c.claim()
    scope = token.access()
    with scope:
        del token
        assert c.is_mutable()
    del scope
    assert not c.is_owned()


def test_identity_and_state_survive_without_a_python_reference():
    """Held by C++ alone, a subclass instance keeps its attributes and its identity."""
    c = Slots()
    c.mark = "kept"
    h = Evictable(c, CPU(2))
    address = id(c)
    del c
    gc.collect()
    assert h.primary.mark == "kept"
    assert id(h.primary) == address
    assert h.primary is h.primary


def test_reference_counts_are_exact():
    c = CPU(2)
    before = sys.getrefcount(c)
    t = Tensor(c, 0, LINE)
    h = Evictable(c, CPU(2))
    token = h.claim()
    with token.access():
        pass
    del token, h, t
    gc.collect()
    assert sys.getrefcount(c) == before


def test_failing_calls_keep_nothing():
    c = CPU(2)
    before = sys.getrefcount(c)
    for call in (
        lambda: Evictable(c, c),
        lambda: Evictable(c, None),
        lambda: Tensor(c, -1, LINE),
        lambda: c.scatter(c, c, LINE),
        lambda: c.new_like(3),
        lambda: c.new_like([object()]),
        lambda: c.allocate_like("1"),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    gc.collect()
    assert sys.getrefcount(c) == before
    assert not c.is_owned()


def test_what_refers_to_nothing_is_passed_over():
    """A million carriers are no work for the collector; what may be part of a cycle is still looked at."""
    prototype = CPU(3)
    alone = [
        prototype,
        prototype.new_like([1.0]),
        prototype.allocate_like(2),
        Generic([1.0], dtype=DType.Float32),
    ]
    alone += [FileBacked(dtype=DType.Float32), CPU(3, pointer=prototype.pointer())]
    assert [gc.is_tracked(c) for c in alone] == [False] * len(alone)

    class Own(Carrier):
        pass

    wrapped = CPU.from_buffer(array.array("f", [1.0]))
    hierarchy = Evictable(CPU(1), FileBacked(dtype=DType.Float32))
    assert [gc.is_tracked(c) for c in (wrapped, hierarchy, hierarchy.new_like([1.0]), Own())] == [True] * 4
