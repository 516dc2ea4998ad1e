# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, bulk: `fill` writes one value to a range, all of it or none, and counts one mutation."""

import itertools

import carrier_storage as cs
import pytest

from customs import FloatLike, IndexLike, LeastCarrier, refused_at_each_hook
from helpers import state, values
from kinds import BOOL, I32, Cell, each, is_evictable
from values.oracle import bits, loop

MANY = 100_000


@each()
def test_ranges_and_defaults(cell: Cell):
    """`fill(value, start=0, stop=None)`: the range holds the value, the rest is as before, one step each."""
    for arguments, (start, stop) in (
        ((), (0, 6)),
        ((2,), (2, 6)),
        ((1, 4), (1, 4)),
        ((0, None), (0, 6)),
        ((5, 6), (5, 6)),
    ):
        c = cell.make([cell.zero] * 6)
        assert c.fill(cell.good, *arguments) is None
        expected = [cell.good if start <= i < stop else cell.zero for i in range(6)]
        assert values(c) == expected and c.version == 1
    c = cell.make([cell.zero] * 3)
    c.fill(value=cell.good, start=1, stop=2)
    assert c.tolist() == [cell.zero, cell.good, cell.zero]


@each(lambda kind: not kind.custom)
def test_large_fills(cell: Cell):
    """The same where it is bulk work."""
    for count in (16_385, MANY):
        c = cell.make(0).allocate_like(count)
        c.fill(cell.good, 1, count - 2)
        assert c.tolist() == [cell.zero] + [cell.good] * (count - 3) + [cell.zero] * 2 and c.version == 1


def test_larger_than_any_chunk():
    """A file is filled piece by piece."""
    f = cs.FileBacked(dtype=I32)
    f.grow(3_000_000)
    f.fill(-7, 1)
    assert f.path.read_bytes() == bytes(4) + (-7).to_bytes(4, "little", signed=True) * 2_999_999


@each()
def test_nothing_to_fill_is_no_mutation(cell: Cell):
    """But the value is looked at."""
    c = cell.make(3)
    before = state(c)
    for start in (0, 2, 3):
        c.fill(cell.good, start, start)
        with pytest.raises(TypeError):
            c.fill("x", start, start)
    assert state(c) == before


OUTSIDE = [(-1, 2), (0, 5), (5, 5), (3, 2), (0, -1), (2**70, 2**70), (0, 2**70), (-(2**70), 1)]


@each()
def test_a_range_outside_is_an_index_error(cell: Cell):
    """Never clamped; before the value is looked at."""
    c = cell.make(4)
    before = state(c)
    for (start, stop), value in itertools.product(OUTSIDE, (cell.good, "x")):
        with pytest.raises(IndexError, match="range"):
            c.fill(value, start, stop)
    assert state(c) == before


@each()
def test_order_of_checks(cell: Cell):
    """Types of start and stop, state, bounds, value."""
    for build in (cell.make, lambda: cell.make(3, mutable=False), cell.released):
        c = build()
        for wrong in (1.0, "1", [0]):
            with pytest.raises(TypeError, match="start"):
                c.fill("x", wrong)
            with pytest.raises(TypeError, match="stop"):
                c.fill("x", 9, wrong)
    for build in (lambda: cell.make(3, mutable=False), cell.released):
        with pytest.raises(RuntimeError):
            build().fill("x", 9)
    c = cell.make(3)
    with pytest.raises(IndexError):
        c.fill("x", 9)
    with pytest.raises(TypeError):
        c.fill("x")
    assert c.version == 0 and c.tolist() == cell.samples(3)


@each(is_evictable)
def test_an_evicted_hierarchy_cannot_be_filled(cell: Cell):
    h = cell.evicted(3)
    before = state(h)
    with pytest.raises(RuntimeError, match="promote"):
        h.fill(cell.good)
    assert state(h) == before


@each()
def test_owned_carriers_are_filled_by_their_owner(cell: Cell):
    c = cell.make(2)
    token = c.claim()
    with pytest.raises(RuntimeError, match="own"):
        c.fill(cell.good)
    with token.access() as inside:
        inside.fill(cell.good)
    assert c.tolist() == [cell.good] * 2 and c.version == 1


OFFERED = [
    0,
    1,
    -1,
    True,
    False,
    1.5,
    0.1,
    1e39,
    -0.0,
    float("nan"),
    2**31,
    2**54 - 2**29 - 1,
    2**200,
    None,
    "1",
    1j,
]


@each()
def test_the_value_follows_the_one_rule(cell: Cell):
    """The same slot, or the same error, as an index write of the value."""
    for value in OFFERED:
        expected = loop(cell.dtype, [value], holes=False)
        c = cell.make([cell.zero] * 3)
        before = state(c)
        if isinstance(expected, type):
            with pytest.raises(expected):
                c.fill(value)
            assert state(c) == before
        else:
            c.fill(value, 1)
            assert bits(c.tolist()) == bits([cell.zero, *expected * 2]) and c.version == 1


def test_a_value_that_acts():
    """User code ran: everything is looked at once more, and it ran once."""
    seen = []
    c = cs.CPU(3)
    c.fill(FloatLike(2.5, lambda: seen.append(1)))
    assert c.tolist() == [2.5] * 3 and seen == [1]
    with pytest.raises(RuntimeError, match="released"):
        c.fill(FloatLike(1.0, c.release))
    h = cs.Evictable(cs.CPU(2), cs.CPU(2))
    with pytest.raises(RuntimeError, match="promote"):
        h.fill(FloatLike(1.0, h.evict))
    f = cs.FileBacked(dtype=I32).new_like([1, 2])
    f.fill(IndexLike(9, lambda: f.grow(4)))
    assert f.tolist() == [9, 9, 0, 0], "the end is that of the moment when it was asked for"


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "as a primary tier"])
def test_a_hook_that_refuses_leaves_the_old_values(inside):
    assert refused_at_each_hook(lambda c: c.fill(7), [7, 7, 7], inside=inside) > 6


def test_custom_carriers_without_the_hook_or_bytes():
    with pytest.raises(RuntimeError, match="not mutable"):
        LeastCarrier([1.0]).fill(2.0)

    class Any(LeastCarrier):
        def _set_value(self, index, value, /):
            self.slots[index] = value

    c = Any([None, None], cs.DType.Float64)
    with pytest.raises(TypeError):
        c.fill("x")
    assert c.slots == [None, None] and c.version == 0


@each(lambda kind: kind.name in {"file", "file_cpu"}, dtypes=(I32,))
def test_a_fill_that_the_medium_refuses_changes_nothing(cell: Cell):
    """A file that was cut short behind our back is an OSError, and no part of the fill stays."""
    c = cell.make(2_000_000)
    path = (c.primary if cell.kind.evictable else c).path
    raw = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(raw) - 4)
    with pytest.raises(OSError, match="write|read"):
        c.fill(cell.good)
    assert path.read_bytes() == raw[:-4] and c.version == 0


def test_bool_takes_only_bools():
    c = cs.CPU(2, dtype=BOOL)
    for wrong in (1, 0.0, None):
        with pytest.raises(TypeError):
            c.fill(wrong)
    c.fill(True)
    assert c.tolist() == [True, True]
