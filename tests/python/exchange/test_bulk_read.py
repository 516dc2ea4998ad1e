# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, bulk: `read` is a typed memoryview of a copy, `tolist` the values, on every kind."""

import array
import math
import struct
import sys

import carrier_storage as cs
import pytest

from customs import IndexLike, LeastCarrier
from helpers import run_child, state
from kinds import BOOL, F32, I32, Cell, each, is_evictable

FORMATS = {F32: "f", I32: "i", BOOL: "?"}
MANY = 100_000  # enough for the way that gives the interpreter's lock up
RANGES = [(0, 8), (0, 0), (8, 8), (3, 3), (0, 1), (7, 8), (2, 6)]
OUTSIDE = [(-1, 3), (0, 9), (9, 9), (5, 4), (8, 7), (0, -1), (2**70, 2**70), (-(2**70), 2), (0, 2**70)]


@each()
def test_a_range_reads_as_the_slots_do(cell: Cell):
    """`read(start, stop)`: a one-dimensional memoryview with the dtype's format and the slots' values."""
    c = cell.make(8)
    before = state(c)
    for start, stop in RANGES:
        view = c.read(start, stop)
        assert type(view) is memoryview
        assert (view.format, view.ndim, len(view)) == (FORMATS[cell.dtype], 1, stop - start)
        assert view.contiguous and view.nbytes == len(view) * view.itemsize
        assert repr(view.tolist()) == repr(cell.samples(8)[start:stop])
    assert state(c) == before


@each()
def test_the_defaults_are_the_whole(cell: Cell):
    c = cell.make(5)
    for view in (c.read(), c.read(0), c.read(0, None), c.read(stop=None), c.read(start=0, stop=5)):
        assert repr(view.tolist()) == repr(cell.samples(5))
    assert c.read(2).tolist() == cell.samples(5)[2:] and c.read(stop=2).tolist() == cell.samples(5)[:2]
    empty = cell.make([])
    assert empty.read().tolist() == [] and empty.read().format == FORMATS[cell.dtype]


@each()
def test_it_is_a_copy(cell: Cell):
    """Neither side sees what happens to the other, and the copy outlives the carrier."""
    c = cell.make([cell.zero] * 4)
    view = c.read()
    c[1] = cell.good
    assert view.tolist() == [cell.zero] * 4
    view[2] = cell.good
    assert c[2] == cell.zero and c.version == 1
    c.release()
    del c
    assert view.tolist() == [cell.zero, cell.zero, cell.good, cell.zero]


@each(lambda kind: not kind.custom)
def test_large_ranges(cell: Cell):
    """The same where it is bulk work."""
    c = cell.make(MANY)
    expected = cell.samples(MANY)
    assert c.read().tolist() == expected
    assert c.read(7, MANY - 3).tolist() == expected[7:-3]
    assert c.tolist() == expected


@each()
def test_a_range_outside_is_an_index_error(cell: Cell):
    """Never clamped, and negative numbers do not count from the end."""
    c = cell.make(8)
    for start, stop in OUTSIDE:
        with pytest.raises(IndexError, match="range"):
            c.read(start, stop)


@each()
def test_any_integer_is_taken_and_nothing_else(cell: Cell):
    """Integers are anything with `__index__`, bools among them."""
    c = cell.make(4)
    assert c.read(IndexLike(1), IndexLike(3)).tolist() == cell.samples(4)[1:3]
    assert c.read(False, True).tolist() == cell.samples(1)
    for wrong in (1.0, "1", b"1", [1], 1j):
        with pytest.raises(TypeError, match="start"):
            c.read(wrong)
        with pytest.raises(TypeError, match="stop"):
            c.read(0, wrong)
    with pytest.raises(TypeError):
        c.read(None)
    with pytest.raises(TypeError):
        c.read(0, 1, 2)
    c.release()
    with pytest.raises(TypeError):  # before the state
        c.read("1")


@each()
def test_a_released_carrier_cannot_be_read(cell: Cell):
    c = cell.released()
    for call in (c.read, lambda: c.read(0, 0), lambda: c.read(5, 9), c.tolist):
        with pytest.raises(RuntimeError, match="released"):
            call()


@each(is_evictable)
def test_an_evicted_hierarchy_cannot_be_read(cell: Cell):
    h = cell.evicted(3)
    for call in (h.read, lambda: h.read(0, 0), h.tolist):
        with pytest.raises(RuntimeError, match="promote"):
            call()
    h.promote()
    assert h.read().tolist() == h.tolist() == cell.samples(3)


@each()
def test_owned_and_immutable_carriers_can_be_read(cell: Cell):
    frozen = cell.make(3, mutable=False)
    assert frozen.read().tolist() == frozen.tolist() == cell.samples(3)
    token = frozen.claim()
    assert frozen.read(1).tolist() == cell.samples(3)[1:] and frozen.tolist() == cell.samples(3)
    token.relinquish()


@each()
def test_tolist_is_the_list_of_the_values(cell: Cell):
    """`c.tolist()` is `list(c)`: equal values of the exact types, NaN, -0.0 and subnormals included."""
    for count in (0, 1, 2, 7, 40):
        c = cell.make(count)
        made = c.tolist()
        assert type(made) is list and repr(made) == repr(list(c)) == repr(cell.samples(count))
        assert {type(v) for v in made} <= {cell.type}
        made.append(None)
        assert len(c.tolist()) == count


@each(dtypes=(F32,))
def test_every_bit_pattern_is_read(cell: Cell):
    """Infinities and NaN, payload included where the medium holds bytes."""
    c = cell.make([math.inf, -math.inf, math.nan, -0.0])
    read = c.read()
    assert [struct.pack("f", v) for v in read][:2] == [struct.pack("f", v) for v in (math.inf, -math.inf)]
    assert math.isnan(read[2]) and math.copysign(1, read[3]) == -1.0
    assert repr(c.tolist()) == repr(list(c))


def test_nan_payloads_survive():
    memory = array.array("I", [0x7FC12345, 0xFFC54321])
    c = cs.CPU(2, memory.buffer_info()[0])
    assert bytes(c.read()) == memory.tobytes()


def test_foreign_truth_bytes_become_0_and_1():
    """Memory that is wrapped may hold any byte for true."""
    memory = bytearray([0, 1, 2, 255, 128])
    keep = (array.array("B", memory),)
    c = cs.CPU(5, keep[0].buffer_info()[0], dtype=BOOL)
    assert bytes(c.read()) == bytes([0, 1, 1, 1, 1]) and c.tolist() == [False, True, True, True, True]
    assert keep[0].tolist() == [0, 1, 2, 255, 128]


def test_a_dtype_without_bytes():
    """A custom carrier of another dtype has values but no bytes: `read` is a TypeError, `tolist` gives them."""
    c = LeastCarrier([1, "two", None], cs.DType.Float64)
    with pytest.raises(TypeError, match="Float64"):
        c.read()
    assert c.tolist() == list(c) == [1, "two", None]


class BoomError(Exception):
    pass


class Odd(LeastCarrier):
    """Acts at a slot before it is read."""

    def __init__(self, values, act, at=2):
        super().__init__(values)
        self.act, self.at = act, at

    def _get_value(self, index, /):
        if index == self.at:
            self.act(self)
        return super()._get_value(index)


def test_a_hook_that_raises():
    def fail(_):
        raise BoomError

    for call in (lambda c: c.read(), lambda c: c.tolist()):
        c = Odd([1.0, 2.0, 3.0, 4.0], fail)
        with pytest.raises(BoomError):
            call(c)
        assert c.version == 0 and c.read(0, 2).tolist() == [1.0, 2.0]


def test_a_hook_that_releases():
    for call in (lambda c: c.read(), lambda c: c.tolist()):
        c = Odd([1.0, 2.0, 3.0, 4.0], lambda c: c.release())
        with pytest.raises(RuntimeError, match="released"):
            call(c)
        assert c.is_released()


def test_a_hook_that_breaks_the_rule_of_the_dtype():
    c = Odd([1.0, 2.0, 3.0], lambda c: c.slots.__setitem__(2, "text"))
    for call in (c.read, c.tolist):
        with pytest.raises(TypeError):
            call()


def test_a_hook_may_look_at_its_own_carrier():
    seen = []
    c = Odd([1.0, 2.0, 3.0], lambda c: seen.append((len(c), c[0], c.read(0, 1).tolist())))
    assert c.read().tolist() == [1.0, 2.0, 3.0] and seen == [(3, 1.0, [1.0])]


def test_references_are_exact():
    """Values, views and lists are given back."""
    c = cs.CPU(0, dtype=BOOL).new_like([True, False] * 50)
    counts = [sys.getrefcount(c), sys.getrefcount(True)]
    for _ in range(100):
        c.read()
        c.tolist()
    assert sys.getrefcount(c) == counts[0] and abs(sys.getrefcount(True) - counts[1]) < 50


def test_a_file_that_was_cut_short_is_an_os_error():
    f = cs.FileBacked(dtype=I32).new_like(range(1000))
    with f.path.open("r+b") as file:
        file.truncate(1999)
    for call in (f.read, f.tolist, lambda: f.read(499, 501)):
        with pytest.raises(OSError, match="read"):
            call()
    assert f.read(0, 400).tolist() == list(range(400))


def test_interrupted_while_making_a_list():
    """Ctrl-C is honoured, and nobody ever finds the half-made list."""
    run_child(
        """
        import gc, signal, threading
        import carrier_storage as cs
        c = cs.CPU(2_000_000)
        stop = threading.Event()
        def look():
            while not stop.is_set():
                for o in gc.get_objects():
                    if type(o) is list and len(o) == 2_000_000:
                        assert all(v is not None for v in o[-10:])
        thread = threading.Thread(target=look)
        thread.start()
        for _ in range(5):
            assert len(c.tolist()) == 2_000_000
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            while True:
                c.tolist()
        except KeyboardInterrupt:
            pass
        stop.set()
        thread.join()
        assert c.version == 0 and c[0] == 0.0
        """
    )
