# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, bulk: a Tensor has `read`, `write`, `fill` and `tolist` too, flat in logical order."""

import ctypes
import itertools

import carrier_storage as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from customs import Faulty, HookedCarrier, HookFailure, LeastCarrier, WritableCarrier
from helpers import line, many_planes, state, tensor
from kinds import BOOL, F32, I32, KINDS, Cell, each, is_evictable

MANY = 60_000


def layout(shape, stride):
    return cs.Layout(cs.Shape(*shape), cs.Stride(*stride))


ROWS = layout([2, 3], [3, 1])
LAYOUTS = [
    line(4),
    line(3, 2),
    ROWS,
    layout([2, 3], [1, 2]),
    layout([3], [0]),
    layout([2, 2, 2], [0, 1, 3]),
    layout([2, [2, 3]], [6, [3, 1]]),
    layout([3, 3], [1, 1]),
    layout([1, 4, 1], [100, 2, 50]),
    layout([], []),
]


def slots(t):
    return [t.offset + t.layout.index(i) for i in range(t.size())]


@each()
def test_reading_is_in_logical_order(cell: Cell):
    """Every range of `read` is what index reads give one by one, and `tolist` is all of it."""
    c = cell.make(14)
    for placed in LAYOUTS:
        t = cs.Tensor(c, 1, placed)
        one_by_one = [t[i] for i in range(t.size())]
        assert repr(t.tolist()) == repr(one_by_one)
        assert {type(v) for v in t.tolist()} == {cell.type}
        for start, stop in itertools.combinations_with_replacement(range(t.size() + 1), 2):
            view = t.read(start, stop)
            assert repr(view.tolist()) == repr(one_by_one[start:stop]) and view.format == c.read().format
        assert repr(t.read().tolist()) == repr(one_by_one) == repr(t.read(0, None).tolist())
    assert c.version == 0


def model_write(before, t, start, values):
    after = list(before)
    for slot, value in zip(slots(t)[start:], values, strict=False):
        after[slot] = value
    return after


@each()
def test_writing_and_filling_are_in_logical_order(cell: Cell):
    """The later logical index wins where two meet in a slot; slots between them are left alone."""
    before = [cell.zero] * 14
    for placed, start in itertools.product(LAYOUTS, (0, 1, 3, 7)):
        if start >= placed.size:
            continue
        values = cell.samples(placed.size)
        for source in (values[start:], iter(values[start:]), cell.make(values).read(start)):
            c = cell.make(before)
            t = cs.Tensor(c, 1, placed)
            t.write(start, source)
            assert repr(c.tolist()) == repr(model_write(before, t, start, values[start:]))
            assert c.version == t.version == 1
        c = cell.make(before)
        t = cs.Tensor(c, 1, placed)
        t.fill(cell.good, start)
        assert c.tolist() == model_write(before, t, start, [cell.good] * (t.size() - start))
        assert c.version == 1


@each(lambda kind: not kind.custom)
@pytest.mark.parametrize("build", [lambda n: line(n, 2), lambda n: layout([n // 100, 100], [100, 1])])
def test_large_tensors(cell: Cell, build):
    """The same where it is bulk work, whole and in part."""
    placed = build(MANY)
    c = cell.make(0).allocate_like(placed.cosize + 3)
    t = cs.Tensor(c, 2, placed)
    values = cell.samples(MANY)
    t.write(0, values)
    assert t.tolist() == values and c[1] == cell.zero and c[c.size() - 1] == cell.zero
    assert c.read(2, 2 + placed.cosize).tolist()[placed.index(77)] == values[77]
    t.fill(cell.good, 5, MANY - 5)
    assert t.tolist() == values[:5] + [cell.good] * (MANY - 10) + values[-5:]
    t.write(3, t.read(0, MANY - 3))
    assert t.read(8, MANY - 10).tolist() == [cell.good] * (MANY - 18)
    t.fill(cell.zero)
    assert c.tolist() == [cell.zero] * c.size() and c.version == 4


@each()
def test_a_range_outside_is_an_index_error(cell: Cell):
    """Outside the Tensor, even where the carrier has slots."""
    c = cell.make(20)
    t = cs.Tensor(c, 0, ROWS)
    before = state(c)
    for bounds in ((-1, 2), (0, 7), (7, 7), (3, 2), (2**70, 2**70), (0, 2**70)):
        with pytest.raises(IndexError, match="Tensor"):
            t.read(*bounds)
        with pytest.raises(IndexError, match="Tensor"):
            t.fill(cell.good, *bounds)
    for start, values in ((6, [cell.good]), (-1, []), (0, itertools.repeat(cell.good)), (7, [])):
        with pytest.raises(IndexError, match="Tensor"):
            t.write(start, values)
    assert state(c) == before


@each()
def test_state_comes_before_bounds_and_values(cell: Cell):
    c = cell.make(6)
    t = cs.Tensor(c, 0, ROWS)
    c.release()
    for call in (t.read, t.tolist, lambda: t.write(9, "x"), lambda: t.fill("x", 9), lambda: t.read(9)):
        with pytest.raises(RuntimeError, match="released"):
            call()
    with pytest.raises(TypeError, match="start"):
        t.write("0", [])
    frozen = cs.Tensor(cell.make(6, mutable=False), 0, ROWS)
    for call in (lambda: frozen.write(0, []), lambda: frozen.fill("x", 9)):
        with pytest.raises(RuntimeError, match="not mutable"):
            call()
    assert frozen.tolist() == [frozen[i] for i in range(6)]


@each(is_evictable)
def test_a_tensor_over_an_evicted_hierarchy(cell: Cell):
    h = cell.evicted(6)
    t = cs.Tensor(h, 0, ROWS)
    for call in (t.read, t.tolist, lambda: t.write(0, []), lambda: t.fill(cell.good)):
        with pytest.raises(RuntimeError, match="promote"):
            call()
    h.promote()
    assert t.tolist() == [t[i] for i in range(6)] and h.version == 0


@each()
def test_nothing_written_is_no_mutation(cell: Cell):
    c = cell.make(6)
    t = cs.Tensor(c, 0, ROWS)
    t.write(3, [])
    t.write(6, iter(()))
    t.fill(cell.good, 6)
    assert t.read(6).tolist() == [] and c.version == 0


@each()
def test_one_bad_value_writes_nothing(cell: Cell):
    c = cell.make(6)
    t = cs.Tensor(c, 0, ROWS)
    before = state(c)
    for values in ([cell.good, "x"], iter([cell.good, None])):
        with pytest.raises(TypeError, match="value 1"):
            t.write(0, values)
    with pytest.raises(TypeError):
        t.fill(None)
    assert state(c) == before


def test_several_subtensors():
    """The Tensor of a compound dtype has no flat order: NotImplementedError, as elsewhere."""
    t = many_planes()
    for call in (t.read, t.tolist, lambda: t.write(0, [1.0]), lambda: t.fill(1.0), lambda: t.write(0, [])):
        with pytest.raises(NotImplementedError, match="subtensors"):
            call()
    assert [list(part.carrier) for part in t.subtensors] == [[0.0, 0.0], [0, 0]]


def test_hooks_of_custom_carriers():
    """Read and written through them, all or nothing."""
    c = HookedCarrier([0] * 6, I32)
    cs.Tensor(c, 0, ROWS).write(1, [1, 2, 3])
    assert c.slots == [0, 2, 0, 1, 3, 0]
    for call in itertools.count(1):
        custom = Faulty(range(6), I32)
        t = cs.Tensor(custom, 0, ROWS)
        Faulty.arm(call)
        try:
            t.write(0, range(10, 16))
        except HookFailure:
            Faulty.disarm()
            assert (custom.slots, custom.version) == (list(range(6)), 0), call
        else:
            Faulty.disarm()
            break
    assert call > 12 and custom.slots == [10, 12, 14, 11, 13, 15]
    with pytest.raises(RuntimeError, match="not mutable"):
        tensor(LeastCarrier([1.0, 2.0])).fill(1.0)
    opaque = LeastCarrier(["a", "b"], cs.DType.Float64)
    assert tensor(opaque).tolist() == ["a", "b"]
    with pytest.raises(TypeError, match="Float64"):
        tensor(opaque).read()


def test_a_small_part_of_a_large_file():
    """Only what the range reaches is read and written."""
    f = cs.FileBacked(dtype=I32)
    f.grow(1_000_000)
    t = cs.Tensor(f, 10, line(900_000))
    t.write(500_000, [1, 2, 3])
    assert t.read(499_999, 500_004).tolist() == [0, 1, 2, 3, 0] and f[500_011] == 2
    with f.path.open("r+b") as file:
        file.truncate(3_000_000)
    assert t.read(500_000, 500_002).tolist() == [1, 2], "the part that is there"
    with pytest.raises(OSError, match="read"):
        t.read(899_000, 899_001)


# ---- against plain lists ----------------------------------------------------------------------------------

SIZE = 60
CELLS = [
    Cell(kind, dtype)
    for kind in KINDS
    if kind.needs() is None and not kind.custom
    for dtype in kind.dtypes
    if dtype is not F32
]


@st.composite
def placements(draw):
    """An offset and a layout of up to four leaves, nested or not, whose slots lie inside SIZE."""
    leaves = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), max_size=4))
    while sum((e - 1) * s for e, s in leaves) >= SIZE:
        leaves.pop()
    shape, stride = [e for e, _ in leaves], [s for _, s in leaves]
    if len(leaves) > 2 and draw(st.booleans()):
        shape, stride = [shape[0], shape[1:]], [stride[0], stride[1:]]
    placed = layout(shape, stride)
    return draw(st.integers(0, SIZE - placed.cosize)), placed


@settings(max_examples=100, deadline=None)
@given(cell=st.sampled_from(CELLS), placement=placements(), data=st.data())
def test_a_history_against_a_list(cell, placement, data):
    """Writes, fills and reads through a layout, against a list of slots."""
    offset, placed = placement
    value = st.booleans() if cell.dtype is BOOL else st.integers(-(2**31), 2**31 - 1)
    model = data.draw(st.lists(value, min_size=SIZE, max_size=SIZE))
    c = cell.make(model)
    t = cs.Tensor(c, offset, placed)
    where = slots(t)
    steps = 0
    for _ in range(data.draw(st.integers(1, 4))):
        start, stop = sorted(data.draw(st.tuples(st.integers(0, t.size()), st.integers(0, t.size()))))
        if data.draw(st.booleans()):
            given_values = data.draw(st.lists(value, min_size=stop - start, max_size=stop - start))
            t.write(start, data.draw(st.sampled_from([list, tuple, iter]))(given_values))
        else:
            one = data.draw(value)
            given_values = [one] * (stop - start)
            t.fill(one, start, stop)
        for slot, v in zip(where[start:stop], given_values, strict=True):
            model[slot] = v
        steps += stop > start
        assert c.tolist() == model and c.version == steps
    assert t.tolist() == [model[slot] for slot in where]
    start, stop = sorted(data.draw(st.tuples(st.integers(0, t.size()), st.integers(0, t.size()))))
    assert t.read(start, stop).tolist() == [model[slot] for slot in where[start:stop]]


@settings(max_examples=60, deadline=None)
@given(placement=placements(), data=st.data())
def test_values_from_the_carriers_own_memory(placement, data):
    """Read as a snapshot: what a list of them would give."""
    offset, placed = placement
    model = list(range(SIZE))
    c = cs.CPU(0, dtype=I32).new_like(model)
    t = cs.Tensor(c, offset, placed)
    where = slots(t)[:SIZE]
    first = data.draw(st.integers(0, SIZE - len(where)))
    taken = model[first : first + len(where)]
    t.write(0, (ctypes.c_int * len(where)).from_address(c.pointer() + 4 * first))
    for slot, v in zip(where, taken, strict=True):
        model[slot] = v
    assert c.tolist() == model


VAST = cs.Layout(cs.Shape(2**62), cs.Stride(0))  # so many values that their bytes wrap around to 0


@each(lambda kind: not kind.evictable)
def test_more_values_than_memory_can_address(cell: Cell):
    """An allocation too large for memory is a MemoryError, however few slots a broadcast has."""
    c = cell.make(4)
    t = cs.Tensor(c, 0, VAST)
    before = state(c)
    for call in (
        t.read,
        t.tolist,
        lambda: t.read(0, 2**62),
        lambda: t.read(5, 2**62),
        lambda: t.read(0, 2**61),
    ):
        with pytest.raises(MemoryError):
            call()
    with pytest.raises(MemoryError):
        t.__dlpack__(copy=True, max_version=(1, 0))
    with pytest.raises((OverflowError, TypeError, MemoryError)):
        t.write(0, range(2**62))
    if cell.kind.custom:
        with pytest.raises(MemoryError):
            t.fill(cell.good)
    assert state(c) == before
    t.write(2**62 - 1, [cell.good])
    assert c[0] == cell.good and t.read(2**62 - 1)[0] == cell.good


def test_scatters_more_values_than_memory_can_address():
    """The same for what a scatter has to stage: of slots that only hooks reach, and of its own slots."""
    c = WritableCarrier([1.0, 2.0])
    with pytest.raises(MemoryError):
        c.scatter(cs.Tensor(c, 0, VAST), cs.Tensor(c, 0, line(1)), VAST)
    own = cs.CPU(2)
    for source in (c, own):
        with pytest.raises(MemoryError):
            own.scatter(cs.Tensor(source, 0, VAST), cs.Tensor(own, 0, line(1)), VAST)
    assert c.version == own.version == 0
