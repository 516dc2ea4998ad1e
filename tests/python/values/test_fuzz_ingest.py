# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What comes in, at random: exporters of any format, shape and strides, and iterables that misbehave.

The result is the element loop's, or an error of a class that the contract names, and nothing stays alive.
"""

import contextlib
import gc
import math
import struct

import carrier_storage as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from values.oracle import BOOL, CONCRETE, agree, bits, bulk, loop

CODES = "?bBhHiIlLqQefdnNPc"
KINDS = {
    "CPU": lambda dtype: cs.CPU(0, dtype=dtype),
    "Generic": lambda dtype: cs.Generic([], dtype=dtype),
    "FileBacked": lambda dtype: cs.FileBacked(dtype=dtype),
    "Evictable": lambda dtype: cs.Evictable(cs.CPU(1, dtype=dtype), cs.CPU(0, dtype=dtype)),
}

formats = st.one_of(
    st.sampled_from(CODES),
    st.builds(lambda prefix, code: prefix + code, st.sampled_from("@=<>!"), st.sampled_from(CODES)),
    st.builds(
        "".join, st.lists(st.sampled_from(["i", "f", "?", "2h", "3s", "x", "q"]), min_size=1, max_size=3)
    ),
)


@st.composite
def exporters(draw):
    """A buffer that CPython's own test exporter describes to the letter, over any bytes."""
    code = draw(formats)
    try:
        size = struct.calcsize(code)
        fields = len(struct.unpack(code, bytes(size)))
    except struct.error:  # native sizes with a standard prefix
        code, size, fields = "i", 4, 1
    if fields == 0:
        code, size = "i", 4
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=draw(st.sampled_from([1, 1, 1, 2, 3]))))
    count = math.prod(shape)
    raw = draw(st.binary(min_size=count * size, max_size=count * size))
    if code[-1] == "?":
        raw = bytes(b & 1 for b in raw)
    items = [v if len(v) > 1 else v[0] for v in struct.iter_unpack(code, raw)]
    flip = draw(st.booleans()) and len(shape) == 1
    step = draw(st.sampled_from([1, 1, 2]))

    def make():
        exporter = pytest.importorskip("_testbuffer").ndarray
        made = exporter(items, shape=shape, format=code)
        if len(shape) > 1:
            return made
        return made[::-step] if flip else made[::step] if step > 1 else made

    return make


@given(st.sampled_from(CONCRETE), exporters())
def test_any_exporter_is_its_elements(dtype, make):
    agree(dtype, make)


@given(st.sampled_from(CONCRETE), exporters())
def test_bulk_writes_take_what_new_like_takes(dtype, make):
    made = bulk(dtype, make())
    carrier = cs.CPU(100, dtype=dtype)
    if isinstance(made, type):
        with pytest.raises(made):
            carrier.write(0, make())
        assert carrier.version == 0 and not any(carrier)
        return
    carrier.write(3, make())
    assert bits(list(carrier)[3 : 3 + len(made)]) == bits(made)
    assert carrier.version == (1 if made else 0)


class TroubleError(Exception):
    pass


class Strange:
    """An iterable that does `acts` on its way: yields, raises, ends, comes back, and lies about its length."""

    def __init__(self, acts, hint):
        self.acts = iter(acts)
        self.hint = hint

    def __iter__(self):
        return self

    def __next__(self):
        act = next(self.acts)
        return act() if callable(act) else act

    def __length_hint__(self):
        if isinstance(self.hint, type):
            raise self.hint
        return self.hint


def raiser(error):
    def act():
        raise error

    return act


class Number:
    """A number whose conversion does something first."""

    def __init__(self, value, act=lambda: None):
        self.value = value
        self.act = act

    def __index__(self):
        self.act()
        return self.value

    def __float__(self):
        self.act()
        return float(self.value)


good = st.one_of(st.integers(-(2**31), 2**31 - 1), st.booleans(), st.builds(Number, st.integers(-9, 9)))
acts = st.one_of(
    good,
    good,
    good,
    st.floats(width=32, allow_nan=False),
    st.sampled_from([None, "1", 1j, 2**31, 2**1100, Number(2**40), Number("no")]),
    st.builds(
        lambda error: raiser(error),
        st.sampled_from([TroubleError, StopIteration, KeyboardInterrupt, MemoryError]),
    ),
    st.builds(
        lambda error: Number(1, raiser(error)), st.sampled_from([TroubleError, SystemExit, StopIteration])
    ),
)
hints = st.one_of(
    st.integers(-3, 40), st.sampled_from([2**62, 2**70, NotImplemented, "long", 1.5, TypeError, TroubleError])
)
EXPECTED = (
    TypeError,
    ValueError,
    OverflowError,
    TroubleError,
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    StopIteration,
)


@pytest.fixture(autouse=True, scope="module")
def small_heap():
    """What other tests have left is no garbage here: each example collects."""
    gc.collect()
    gc.freeze()


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(CONCRETE), st.lists(acts, max_size=12), hints)
def test_iterables_that_misbehave(kind, dtype, sequence, hint):
    if dtype is BOOL and kind == "FileBacked":
        return
    like = KINDS[kind](dtype)
    gc.collect()
    before = cs._core._live()
    with contextlib.suppress(*EXPECTED):
        made = like.new_like(Strange(sequence, hint))
        want = loop(dtype, list(sequence[: made.size()]), holes=kind != "Generic")
        assert bits(list(made)) == bits(want)
        del made
    gc.collect()
    assert cs._core._live() == before
    assert like.version == 0 and not like.is_released()


@given(
    st.sampled_from(CONCRETE),
    st.integers(0, 8),
    st.sampled_from(["release", "grow", "clear", "gc", "again", "claim"]),
)
def test_conversions_that_reach_back(dtype, at, what):
    """User code in the middle of a bulk write: the call fails cleanly, or writes what the values were."""
    carrier = cs.CPU(10, dtype=dtype)
    other = cs.Evictable(carrier, cs.CPU(0, dtype=dtype)) if what == "claim" else carrier
    zero = cs.storage_zero(dtype)
    values = [zero] * 9

    def act():
        if what == "release":
            other.release()
        elif what == "grow":
            values.extend([zero] * 100)
        elif what == "clear":
            values.clear()
        elif what == "gc":
            gc.collect()
        elif what == "again":
            carrier.write(0, [zero])
        else:
            with contextlib.suppress(RuntimeError):
                other.evict()

    values[at] = Number(1, act)
    with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
        other.write(0, values)
        assert not other.is_released()
        assert other.version in (1, 2)
    if not other.is_released():
        with contextlib.suppress(RuntimeError):
            assert list(other)[9:] == [zero]
