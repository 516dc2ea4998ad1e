# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions G: the order of scatter's checks, aliasing, duplicates."""

import itertools

import carrier_storage as cs
import pytest
from carrier_storage import Layout, Shape, Stride, Tensor

from helpers import line, many_planes, state, tensor, values
from kinds import F32, I32, cells, each, each_kind, scatters

# Each fault turns a good call into one that fails in one of the classes of the documented order.
CLASSES = ["types", "planes", "state", "value", "bounds", "dtype"]
ERRORS = {
    "types": TypeError,
    "planes": NotImplementedError,
    "state": RuntimeError,
    "value": ValueError,
    "bounds": IndexError,
    "dtype": TypeError,
}


class Call:
    """A scatter in the making: faults change its parts, then it is tried."""

    def __init__(self, cell):
        self.cell = cell
        self.c = cell.make(6)
        self.source_carrier = cell.make(3)
        self.onto, self.mapping, self.offset = tensor(self.c), line(3), 1
        self.source = tensor(self.source_carrier)
        self.late = []  # what happens to the carriers when the tensors stand

    def attempt(self):
        for act in self.late:
            act()
        self.c.scatter(self.source, self.onto, self.mapping, self.offset)


def set_(name, value):
    return lambda call: setattr(call, name, value(call) if callable(value) else value)


def evict_or_release(call):
    call.late.append(call.c.evict if call.cell.kind.evictable else call.c.release)


def frozen(call):
    call.c = call.cell.make(6, mutable=False)
    call.onto = tensor(call.c)


def claimed(call):
    call.late.append(lambda: setattr(call, "token", call.c.claim()))


def wrong_dtype(call):
    # Bool receives nothing but Bool, Int32 nothing but Int32, Float32 takes all: no such fault there.
    call.source_carrier = cs.CPU(3, dtype=F32 if call.cell.dtype is not F32 else I32)
    call.source = tensor(call.source_carrier)


FAULTS = {
    "types": [set_("source", None), set_("onto", 3), set_("mapping", lambda c: "map"), set_("offset", 1.5)],
    "planes": [set_("source", lambda c: many_planes()), set_("onto", lambda c: many_planes())],
    "state": [
        lambda call: call.late.append(lambda: call.c.release()),
        lambda call: call.late.append(lambda: call.source_carrier.release()),
        evict_or_release,
        frozen,
        claimed,
    ],
    "value": [
        set_("onto", lambda c: tensor(c.cell.make(6))),
        set_("mapping", lambda c: line(2)),
        set_("offset", -1),
    ],
    "bounds": [set_("offset", 4), set_("offset", 2**70)],
    "dtype": [wrong_dtype],
}

numeric = pytest.mark.parametrize("cell", cells(scatters, dtypes=(I32,)))


@numeric
@pytest.mark.parametrize("fault", CLASSES)
def test_each_fault_alone(cell, fault):
    """Every fault by itself has its error, and changes nothing."""
    for spoil in FAULTS[fault]:
        call = Call(cell)
        spoil(call)
        with pytest.raises(ERRORS[fault]):
            call.attempt()
        assert call.c.version == 0
        if not call.c.is_released():
            if cell.kind.evictable:
                call.token = None
                call.c.promote()
            assert values(call.c) == cell.samples(6)


@numeric
@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(CLASSES, 2)))
def test_the_order_of_checks(cell, first, second):
    """types, multi-subtensor, released/evicted and mutability, foreign/shape/offset, bounds, dtype."""
    for a, b in itertools.product(FAULTS[first], FAULTS[second]):
        call = Call(cell)
        b(call)
        a(call)  # the later change wins where both touch one argument; then only the first fault is left
        with pytest.raises(ERRORS[first]):
            call.attempt()


@numeric
def test_mutability_against_released_source(cell):
    """Both are RuntimeErrors, before any ValueError."""
    c = cell.make(3, mutable=False)
    t = tensor(cell.make(2))
    t.carrier.release()
    with pytest.raises(RuntimeError):
        c.scatter(t, tensor(cell.make(3)), line(9), -1)


@each(scatters)
def test_only_the_offset_of_scatter_onto_is_used(cell):
    """scatter_onto must be backed by the receiver itself; only its offset is used."""
    c = cell.make([cell.zero] * 6)
    odd = Tensor(c, 2, Layout(Shape(2, 2), Stride(0, 1)))
    c.scatter(tensor(cell.make([cell.good] * 3)), odd, line(3))
    assert values(c) == [cell.zero] * 2 + [cell.good] * 3 + [cell.zero]


@each_kind(scatters)
def test_the_destination_is_the_receiver_itself(cell):
    """A Tensor over another carrier is foreign: over a tier, and over a hierarchy for its tier."""
    c = cell.make(3)
    t = tensor(cell.make(1))
    with pytest.raises(ValueError):
        c.scatter(t, tensor(cell.make(3)), line(1))
    if cell.kind.evictable:
        with pytest.raises(ValueError):
            c.scatter(t, tensor(c.primary), line(1))
        with pytest.raises(RuntimeError):  # an owned tier: mutability comes first
            c.primary.scatter(t, tensor(c), line(1))
    assert (values(c), c.version) == (cell.samples(3), 0)


@pytest.mark.parametrize("receiver", cells(scatters, dtypes=(I32,)))
def test_the_source_may_live_on_any_kind(receiver):
    """The source may live on any kind of carrier."""
    for source in cells(dtypes=(I32,)):
        c = receiver.make([0] * 5)
        s = source.values[0].make([7, 8, 9, 10, 11, 12])
        c.scatter(
            Tensor(s, 1, Layout(Shape(2, 2), Stride(3, 1))), tensor(c), Layout(Shape(2, 2), Stride(1, 2)), 1
        )
        assert values(c) == [0, 8, 11, 9, 12]
        assert (c.version, s.version) == (1, 0)


@each(scatters)
def test_a_source_on_the_receiver_is_a_snapshot(cell):
    """It reads as a snapshot, so a source on the receiver itself is safe, in any overlap."""
    n = 600
    start = cell.samples(n)
    for source, mapping, offset in (
        (line(n), Layout(Shape(n), Stride(1)), 0),
        (line(n - 1), line(n - 1), 1),
        (line(n // 2, 2), line(n // 2), 0),
        (line(n // 2), line(n // 2, 2), 1),
        (Layout(Shape(20, 30), Stride(30, 1)), Layout(Shape(20, 30), Stride(1, 20)), 0),
        (Layout(Shape(n), Stride(0)), line(n), 0),
    ):
        c = cell.make(start)
        if source.shape != mapping.shape:
            source = Layout(mapping.shape, source.stride)
        c.scatter(Tensor(c, 0, source), tensor(c), mapping, offset)
        want = list(start)
        for i in range(source.size):
            want[offset + mapping.index(i)] = start[source.index(i)]
        assert repr(values(c)) == repr(want) and c.version == 1


@each(scatters)
def test_the_later_logical_index_wins(cell):
    """Where two source values go to one slot, the later logical index wins."""
    data = cell.samples(6)
    for mapping in (
        Layout(Shape(6), Stride(0)),
        Layout(Shape(2, 3), Stride(1, 1)),
        Layout(Shape(3, 2), Stride(1, 0)),
        Layout(Shape(2, 3), Stride(0, 1)),
        Layout(Shape(3, 2), Stride(2, 1)),
        Layout(Shape(2, [3, 1]), Stride(0, [2, 5])),
    ):
        c = cell.make([cell.zero] * 8)
        layout = Layout(mapping.shape, _steps(mapping.shape))
        c.scatter(Tensor(cell.make(data), 0, layout), tensor(c), mapping)
        want = [cell.zero] * 8
        for i in range(6):
            want[mapping.index(i)] = data[layout.index(i)]
        assert repr(values(c)) == repr(want), mapping


def _steps(shape):
    """Dense steps for the shapes above: the first mode fastest."""
    return {
        repr(Shape(6)): Stride(1),
        repr(Shape(2, 3)): Stride(1, 2),
        repr(Shape(3, 2)): Stride(1, 3),
        repr(Shape(2, [3, 1])): Stride(1, [2, 6]),
    }[repr(shape)]


@each(scatters)
def test_each_completed_scatter_advances_the_version_by_one(cell):
    """Each completed scatter advances the version by one; one slot, many, or the same ones."""
    c = cell.make(6)
    for step, size in enumerate((1, 6, 3, 1), 1):
        c.scatter(tensor(c, size), tensor(c), line(size))
        assert c.version == step


@each_kind(scatters)
def test_bounds_are_those_of_the_slots(cell):
    """A destination slot outside the carrier (IndexError): the last one counts, wherever it comes from."""
    c = cell.make(6)
    s = tensor(cell.make(4))
    for onto, mapping, offset in (
        (tensor(c), Layout(Shape(2, 2), Stride(5, 1)), 0),
        (tensor(c, 1, offset=5), line(4, 0), 1),
        (tensor(c), line(4), 3),
        (tensor(c, 3, offset=3), line(4), 0),
    ):
        source = (
            Tensor(s.carrier, 0, Layout(mapping.shape, Stride(1, 2))) if mapping.shape != line(4).shape else s
        )
        before = state(c)
        with pytest.raises(IndexError):
            c.scatter(source, onto, mapping, offset)
        assert state(c) == before
    c.scatter(s, tensor(c), line(4, 0), 5)
    assert c[5] == cell.samples(4)[3]


@each_kind(lambda kind: not kind.scatters)
def test_a_file_refuses_first(cell):
    """FileBacked raises NotImplementedError whatever the arguments; so does an Evictable over one, however deep."""
    deep = cs.Evictable(cell.make(3), cs.CPU(1, dtype=cell.dtype))
    for c in (cell.make(3), deep):
        with pytest.raises(NotImplementedError):
            c.scatter(None, None, None)
        if isinstance(c, cs.Evictable):
            c.evict()
            with pytest.raises(NotImplementedError):
                c.scatter(None, None, None)
        c.release()
        with pytest.raises(NotImplementedError):
            c.scatter(None, None, None)


def test_scatter_of_a_single_slot_shape():
    """Shape() has one index: its source is one value."""
    c = cs.CPU(3, dtype=I32)
    s = cs.CPU(0, dtype=I32).new_like([9])
    scalar = Layout(Shape(), Stride())
    c.scatter(Tensor(s, 0, scalar), tensor(c), scalar, 2)
    assert values(c) == [0, 0, 9]
    with pytest.raises(ValueError):
        c.scatter(Tensor(s, 0, scalar), tensor(c), line(1))


def test_a_big_scatter():
    """Transposing a matrix of a million values goes where the mapping says."""
    n = 1000
    s = cs.CPU(0, dtype=I32).new_like(range(n * n))
    c = cs.CPU(n * n, dtype=I32)
    shape = Shape(n, n)
    c.scatter(Tensor(s, 0, Layout(shape, Stride(n, 1))), tensor(c), Layout(shape, Stride(1, n)))
    for i, j in ((0, 0), (1, 0), (0, 1), (999, 0), (0, 999), (123, 456), (999, 999)):
        assert c[i + n * j] == i * n + j
    assert c.version == 1
