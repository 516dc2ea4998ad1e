# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, bulk: `write` takes any values by the one rule, all of them or none, and counts one mutation."""

import array
import ctypes
import itertools

import carrier_storage as cs
import pytest

from customs import FloatLike, HookedCarrier, IndexLike, LeastCarrier, refused_at_each_hook
from helpers import state, values
from kinds import BOOL, F32, I32, Cell, each, is_evictable, stored
from values.oracle import bits, loop

np = pytest.importorskip("numpy")
MANY = 100_000
CODES = {F32: "f", I32: "i", BOOL: "B"}


def sources(dtype, wanted):
    """The same values in every shape that values come in."""
    ways = {
        "list": list,
        "tuple": tuple,
        "generator": lambda v: (x for x in v),
        "iterator": iter,
        "dict": dict.fromkeys,
        "view": lambda v: cs.CPU(0, dtype=dtype).new_like(v).read(),
        "array": lambda v: np.array(v, {F32: "f4", I32: "i4", BOOL: "?"}[dtype]),
        "strided": lambda v: np.repeat(np.array(v, {F32: "f4", I32: "i4", BOOL: "?"}[dtype]), 2)[::2],
        "backwards": lambda v: np.array(v[::-1], {F32: "f4", I32: "i4", BOOL: "?"}[dtype])[::-1],
        "objects": lambda v: np.array(v, object),
        "carrier": lambda v: cs.CPU(0, dtype=dtype).new_like(v),
        "frozen": lambda v: cs.Generic(v, dtype=dtype, mutable=False),
    }
    if dtype is not BOOL:
        ways["file"] = lambda v: cs.FileBacked(dtype=dtype).new_like(v)
        ways["wide"] = lambda v: np.array(v, {F32: "f8", I32: "i8"}[dtype])
        ways["swapped"] = lambda v: np.array(v, {F32: ">f4", I32: ">i4"}[dtype])
    del ways["dict" if len(set(wanted)) != len(wanted) else "objects"]
    return {name: way(wanted) for name, way in ways.items()}


@each()
def test_any_values_and_one_step(cell: Cell):
    """Whatever carries the values: they are in their slots, the others as before, the version one further."""
    wanted = [*cell.samples(2)[::-1], cell.good]
    for name, source in sources(cell.dtype, wanted).items():
        c = cell.make([cell.zero] * 6)
        assert c.write(2, source) is None, name
        assert values(c) == [cell.zero] * 2 + [stored(v, cell.dtype) for v in wanted] + [cell.zero], name
        assert c.version == 1, name


@each()
def test_no_values_are_no_mutation(cell: Cell):
    c = cell.make(3)
    before = state(c)
    for nothing in ([], (), iter(()), array.array("i"), np.empty(0, "f4"), range(0), "", cell.make([])):
        for start in (0, 1, 3):
            c.write(start, nothing)
    assert state(c) == before


@each(lambda kind: not kind.custom)
def test_large_writes(cell: Cell):
    """The same where it is bulk work, with and without conversion."""
    expected = [cell.zero, *cell.samples(MANY - 2), cell.zero]
    samples = expected[1:-1]
    for source in (samples, iter(samples), cell.make(samples).read(), np.array(samples)):
        c = cell.make(0).allocate_like(MANY)
        c.write(1, source)
        assert c.tolist() == expected and c.version == 1


@each()
def test_a_range_outside_is_an_index_error(cell: Cell):
    """Nothing is clamped, nothing written, whether the number of values is known or not."""
    c = cell.make(4)
    before = state(c)
    for start, count in ((-1, 1), (-1, 0), (5, 0), (4, 1), (3, 2), (0, 5), (2**70, 1), (-(2**70), 0)):
        good = [cell.good] * count
        for source in (good, tuple(good), iter(good), array.array(CODES[cell.dtype], good), cell.make(good)):
            with pytest.raises(IndexError, match="range"):
                c.write(start, source)
    assert state(c) == before


@each()
def test_values_without_end(cell: Cell):
    """As soon as there are more than fit, that is an IndexError."""
    c = cell.make(4)
    before = state(c)
    with pytest.raises(IndexError, match="range"):
        c.write(1, itertools.repeat(cell.good))
    assert state(c) == before
    taken = []
    with pytest.raises(IndexError):
        c.write(2, (taken.append(i) or cell.good for i in itertools.count()))
    assert state(c) == before and len(taken) < 1000


@each()
def test_order_of_checks(cell: Cell):
    """Type of start, state, bounds, values: the first that fails is the one that is reported."""
    c = cell.make(3)
    untouched = iter([cell.good])
    for wrong in (1.0, "1", None, [0]):
        with pytest.raises(TypeError, match="start"):
            c.write(wrong, untouched)
    with pytest.raises(IndexError):
        c.write(4, 5)  # bounds before values
    with pytest.raises(IndexError):
        c.write(2, [object(), object()])
    with pytest.raises(TypeError, match="iterable"):
        c.write(0, 5)
    for build in (lambda: cell.make(3, mutable=False), lambda: cell.released()):
        refuses = build()
        with pytest.raises(TypeError, match="start"):
            refuses.write("0", untouched)
        for start, what in ((0, untouched), (9, untouched), (0, 5), (0, [])):
            with pytest.raises(RuntimeError):
                refuses.write(start, what)
    assert next(untouched) == cell.good, "refused before the values were asked for"


@each(is_evictable)
def test_an_evicted_hierarchy_cannot_be_written(cell: Cell):
    h = cell.evicted(3)
    before = state(h)
    for what in ([cell.good], []):
        with pytest.raises(RuntimeError, match="promote"):
            h.write(0, what)
    assert state(h) == before


@each()
def test_owned_carriers_are_written_by_their_owner(cell: Cell):
    c = cell.make([cell.zero] * 2)
    token = c.claim()
    with pytest.raises(RuntimeError, match="own"):
        c.write(0, [cell.good])
    assert c.version == 0
    with token.access() as inside:
        inside.write(1, [cell.good])
    assert c.tolist() == [cell.zero, cell.good] and c.version == 1


BAD = {
    F32: ["1", None, 1j, b"1", [1.0], 2**1024, object(), np.complex64(1)],
    I32: [1.0, True, None, "1", 2**31, -(2**31) - 1, 2**70, np.bool_(True)],
    BOOL: [1, 0.0, None, "True", np.bool_(True)],
}


@each()
def test_one_bad_value_writes_nothing(cell: Cell):
    """All or nothing, with the error of the rule for values and the position of the value."""
    c = cell.make(4)
    before = state(c)
    for bad in BAD[cell.dtype]:
        wanted = [cell.good, cell.good, bad]
        error = loop(cell.dtype, wanted, holes=False)
        for source in (wanted, tuple(wanted), iter(wanted)):
            with pytest.raises(error, match="value 2"):
                c.write(1, source)
    assert state(c) == before


def typed_sources(dtype):
    for code in "?bBhHiIqQefd":
        yield np.array([0, 1, 1, 0], code)
    for code in "bhiq":
        yield np.array([-1, 100, 0], code)
    yield np.array([2**31, 1], "q")
    yield np.array([1, 2**40], "Q")
    yield np.array([0.1, 1e39, -0.0, np.nan, np.inf], "f8")
    yield np.array([0.1, 1e-45, -0.0], "f4")
    yield b"\x00\x01\x02"
    yield bytearray(b"\x05")
    yield memoryview(b"\x01\x00").cast("?")
    yield array.array("l", [1, 2, 3])


@each(lambda kind: kind.name in {"cpu", "file", "custom", "cpu_file"})
def test_typed_buffers_stand_for_their_values(cell: Cell):
    """What a buffer's format stands for, by the rule: the same as the loop over its elements."""
    for source in typed_sources(cell.dtype):
        expected = loop(cell.dtype, source.tolist() if hasattr(source, "tolist") else source, holes=False)
        c = cell.make([cell.zero] * 8)
        before = state(c)
        if isinstance(expected, type):
            with pytest.raises(expected):
                c.write(0, source)
            assert state(c) == before
        else:
            c.write(0, source)
            assert bits(c.tolist()[: len(expected)]) == bits(expected) and c.version == 1


@each(lambda kind: kind.name in {"cpu", "generic", "file", "custom"})
@pytest.mark.parametrize("source", [np.zeros((2, 2), "f4"), np.array(5.0), np.zeros(2, "f4,i4"), "ab", b"ab"])
def test_what_is_no_sequence_of_values(cell: Cell, source):
    """More dimensions, none, structures and text are errors of the rule, as they are for `new_like`."""
    c = cell.make(4)
    before = state(c)
    try:
        expected = list(cs.CPU(0, dtype=cell.dtype).new_like(source))
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            c.write(0, source)
        assert state(c) == before
    else:
        c.write(0, source)
        assert c.tolist()[: len(expected)] == expected


def test_an_error_of_the_iterator_passes_through():
    class BoomError(Exception):
        pass

    def broken():
        yield 1.0
        raise BoomError

    c = cs.CPU(4)
    with pytest.raises(BoomError):
        c.write(0, broken())
    assert c.tolist() == [0.0] * 4 and c.version == 0


# ---- values that overlap the destination ------------------------------------------------------------------

overlapping = each(lambda kind: kind.name in {"cpu", "wrapped", "cpu_cpu", "nested_primary"})


def own_memory(carrier) -> memoryview:
    """The carrier's own memory."""
    while isinstance(carrier, cs.Evictable):
        carrier = carrier.primary
    item = {F32: ctypes.c_float, I32: ctypes.c_int, BOOL: ctypes.c_bool}[carrier.dtype()]
    return memoryview((item * carrier.size()).from_address(carrier.pointer()))


@overlapping
def test_overlapping_values_are_a_snapshot(cell: Cell):
    """Read as they were before the write, both ways, at any size, conversion or not."""
    for size, shift in itertools.product([7, 1000, MANY], [1, 3]):
        before = cell.samples(size)
        c = cell.make(before)
        c.write(shift, own_memory(c)[:-shift])
        assert c.tolist() == before[:shift] + before[:-shift] and c.version == 1
        c = cell.make(before)
        c.write(0, own_memory(c)[shift:])
        assert c.tolist() == before[shift:] + before[-shift:]
        c = cell.make(before)
        c.write(0, np.asarray(own_memory(c))[::-1])
        assert c.tolist() == before[::-1]
        c.write(0, c)
        assert c.tolist() == before[::-1] and c.version == 2


@each()
def test_values_may_be_the_carrier_itself(cell: Cell):
    c = cell.make(5)
    c.write(0, c)
    assert c.tolist() == cell.samples(5) and c.version == 1
    c.write(1, (c[i] for i in range(4)))
    assert c.tolist() == [*cell.samples(1), *cell.samples(4)]


def test_values_in_the_memory_of_a_custom_carrier():
    """Its hooks write to the memory that the values are read from."""

    class OverArray(LeastCarrier):
        def _set_value(self, index, value, /):
            self.slots[index] = value

    c = OverArray([])
    c.slots = array.array("f", [1, 2, 3, 4, 5])
    c.write(1, memoryview(c.slots)[:4])
    assert c.tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]


def test_unaligned_values():
    """A buffer may begin at any address."""
    memory = bytearray(41)
    np.frombuffer(memory, "f4", 10, 1)[:] = range(10)
    c = cs.CPU(10)
    c.write(0, np.frombuffer(memory, "f4", 10, 1))
    assert c.tolist() == list(map(float, range(10)))
    wrapped = cs.CPU(10, ctypes.addressof((ctypes.c_char * 41).from_buffer(memory)) + 1)
    wrapped.write(1, wrapped.read(0, 9))
    assert wrapped.tolist() == [0.0, *map(float, range(9))]


# ---- user code in the middle ------------------------------------------------------------------------------


@each()
def test_values_that_release_the_carrier(cell: Cell):
    """User code ran: everything is looked at once more."""
    c = cell.make(3)

    def source():
        yield cell.good
        c.release()
        yield cell.good

    with pytest.raises(RuntimeError, match="released"):
        c.write(0, source())
    assert c.is_released() and c.version == 0


@each(is_evictable)
def test_values_that_evict_the_carrier(cell: Cell):
    h = cell.make(3)

    def source():
        yield cell.good
        h.evict()

    with pytest.raises(RuntimeError, match="promote"):
        h.write(0, source())
    h.promote()
    assert h.tolist() == cell.samples(3) and h.version == 0


@each()
def test_values_that_write_the_carrier(cell: Cell):
    """The values that were given win; both writes count."""
    c = cell.make([cell.zero] * 3)

    def source():
        c[0] = c[2] = cell.good
        yield cell.zero
        yield cell.good

    c.write(0, source())
    assert c.tolist() == [cell.zero, cell.good, cell.good] and c.version == 3


def test_values_that_claim_the_carrier():
    c = cs.CPU(2)
    tokens = []
    with pytest.raises(RuntimeError, match="own"):
        c.write(0, (tokens.append(c.claim()) or 1.0 for _ in range(1)))
    assert c.tolist() == [0.0, 0.0]


def test_values_that_grow_the_file():
    """Bounds are those of the moment of the write."""
    f = cs.FileBacked(dtype=I32).new_like([1, 2])

    def source():
        yield 5
        f.grow(500)
        yield from range(400)

    f.write(1, source())
    assert f.size() == 500 and f.tolist() == [1, 5, *range(400), *[0] * 98] and f.version == 1


def test_numbers_that_act():
    """`__index__` and `__float__` run once for each value, and may release."""
    seen = []
    c = cs.CPU(3)
    c.write(IndexLike(1), [FloatLike(1.5, lambda: seen.append("f")), IndexLike(2, lambda: seen.append("i"))])
    assert seen == ["f", "i"] and c.tolist() == [0.0, 1.5, 2.0]
    with pytest.raises(RuntimeError):
        c.write(IndexLike(0, c.release), [1.0])


def test_a_list_that_changes_while_it_is_read():
    source = [1.0, None, 3.0]
    source[1] = FloatLike(2.0, source.clear)
    c = cs.CPU(3)
    c.write(0, source)
    assert c.tolist() == [1.0, 2.0, 0.0]
    source[:] = [FloatLike(1.0, lambda: source.extend([5.0] * 10)), 2.0]
    before = state(c)
    with pytest.raises(IndexError):
        c.write(0, source)
    assert state(c) == before


def test_a_released_source():
    source = cs.CPU(3)
    source.release()
    c = cs.CPU(3)
    with pytest.raises(RuntimeError, match="released"):
        c.write(0, source)
    assert c.version == 0


# ---- custom carriers --------------------------------------------------------------------------------------


def test_hooks_get_normalized_values():
    c = HookedCarrier([0.0] * 3, F32)
    c.write(0, [0.1, 2, True])
    assert repr(c.slots) == repr([stored(0.1, F32), 2.0, 1.0]) and c.version == 1


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "as a primary tier"])
def test_a_hook_that_refuses_leaves_the_old_values(inside):
    """Whichever hook call raises: the values are as they were and the version too."""
    assert refused_at_each_hook(lambda c: c.write(0, [7, 8, 9]), [7, 8, 9], inside=inside) > 6


def test_a_hook_that_releases_the_carrier():
    class Fleeting(HookedCarrier):
        def _set_value(self, index, value, /):
            if index == 1:
                self.release()
                return
            super()._set_value(index, value)

    c = Fleeting([1, 2, 3], I32)
    with pytest.raises(RuntimeError, match="released"):
        c.write(0, [7, 8, 9])
    assert c.is_released() and c.version == 0


def test_without_the_hook_a_custom_carrier_is_immutable():
    c = LeastCarrier([1.0])
    for what in ([2.0], []):
        with pytest.raises(RuntimeError, match="not mutable"):
            c.write(0, what)


def test_a_dtype_without_bytes():
    class Any(LeastCarrier):
        def _set_value(self, index, value, /):
            self.slots[index] = value

    c = Any([None], cs.DType.Float64)
    with pytest.raises(TypeError, match="Float64"):
        c.write(0, ["x"])
    assert c.slots == [None]


@pytest.mark.parametrize("name", ["read", "write", "fill", "tolist"])
def test_the_methods_are_not_open_to_overriding(name):
    """Every path into the storage stays the base's own; the message names the hook to write."""
    with pytest.raises(TypeError, match="hook _[gs]et_value"):
        type("Own", (LeastCarrier,), {name: lambda self, *args: None})


# ---- buffers ----------------------------------------------------------------------------------------------


@each(lambda kind: not kind.evictable)
def test_source_buffers_are_given_back(cell: Cell):
    """After the call the source can be resized, whatever came of it."""
    c = cell.make(3)
    for start, items in ((0, [1, 0]), (2, [1, 0]), (9, [1])):
        source = array.array("d", items)
        same = array.array({F32: "f", I32: "i", BOOL: "b"}[cell.dtype], items)
        for b in (source, same):
            try:
                c.write(start, b)
            except (TypeError, IndexError):
                pass
            b.append(1)


def test_an_exporter_that_fails_is_iterated_or_passes_its_error():
    """BufferError means no buffer; the values are then iterated."""

    class Torn(cs.Carrier):  # exports nothing
        def _size(self):
            return 2

        def _dtype(self):
            return F32

        def _get_value(self, index, /):
            return float(index)

    c = cs.CPU(2)
    c.write(0, Torn())
    assert c.tolist() == [0.0, 1.0]
