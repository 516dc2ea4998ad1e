# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Bulk ingest against the element loop: lists, tuples, generators, ranges."""

import collections

import carrier_storage as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from values.oracle import BOOL, CONCRETE, F32, I32, agree, bits, bulk, loop

BORDER = 2**128 - 2**103  # from here on binary32 has no finite number

integers = st.one_of(
    st.integers(-(2**31) - 3, 2**31 + 3),
    st.integers(-(2**70), 2**70),
    st.integers(-(2**129), 2**129),
    st.builds(lambda e, d: 2**e + d, st.integers(0, 130), st.integers(-2, 2)),
    st.sampled_from([0, 2**30, -(2**30), 2**30 - 1, 2**60, BORDER, BORDER - 1, -BORDER]),
)
floats = st.floats(width=64)
scalars = st.one_of(integers, floats, st.booleans())
anything = st.one_of(scalars, st.none(), st.text(max_size=2), st.just(1j), st.binary(max_size=2))
dtypes = st.sampled_from(CONCRETE)


class Indexed:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Floated:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


@given(dtypes, st.lists(anything, max_size=40))
def test_lists_and_tuples(dtype, values):
    agree(dtype, lambda: list(values))
    agree(dtype, lambda: tuple(values))


@given(dtypes, st.lists(anything, max_size=40))
def test_iterables(dtype, values):
    agree(dtype, lambda: (v for v in values))
    agree(dtype, lambda: iter(values))
    agree(dtype, lambda: collections.deque(values))
    agree(dtype, lambda: type("L", (list,), {})(values))


@given(st.sampled_from((F32, I32)), st.lists(integers, max_size=40))
def test_integers(dtype, values):
    agree(dtype, lambda: list(values))
    agree(dtype, lambda: [Indexed(v) for v in values])


@given(st.lists(floats, max_size=40))
def test_floats(values):
    agree(F32, lambda: list(values))
    agree(F32, lambda: [Floated(v) for v in values])


@given(st.lists(st.booleans(), max_size=1500), st.none() | st.tuples(st.integers(0, 1499), anything))
def test_booleans_with_one_stranger(values, stranger):
    if stranger is not None and stranger[0] < len(values):
        values[stranger[0]] = stranger[1]
    agree(BOOL, lambda: list(values))


bounds = st.one_of(st.integers(-50, 50), st.integers(-(2**33), 2**33), st.integers(-(2**66), 2**66))


@given(dtypes, bounds, st.integers(0, 60), st.one_of(st.integers(-9, 9), bounds).filter(bool))
def test_ranges(dtype, start, count, step):
    made = range(start, start + count * step, step)
    assert len(made) == count
    agree(dtype, lambda: made)


@pytest.mark.parametrize(
    ("made", "at"),
    [
        (range(2**31 - 2, 2**31 + 9), 2),
        (range(-(2**31) + 3, -(2**31) - 5, -2), 2),
        (range(2**31, 2**31 + 1), 0),
        (range(0, 2**40, 2**29), 4),
    ],
)
def test_a_range_names_the_first_value_outside(made, at):
    with pytest.raises(OverflowError, match=rf"\b{at}\b"):
        cs.CPU(0, dtype=I32).new_like(made)


def test_a_vast_range_fails_before_it_is_read():
    with pytest.raises((MemoryError, OverflowError)):
        cs.CPU(0, dtype=I32).new_like(range(2**40))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 16383, 16384, 16385, 70001])
def test_sizes_around_the_chunks(size):
    floats = [i / 7 for i in range(size)]
    ints = [i * 40503 % 2**32 - 2**31 for i in range(size)]
    flags = [i % 3 == 0 for i in range(size)]
    for dtype, values in ((F32, floats), (I32, ints), (BOOL, flags)):
        want = bits(loop(dtype, values))
        for source in (list(values), tuple(values), iter(values)):
            got = cs.CPU(0, dtype=dtype).new_like(source)
            assert got.size() == size and bits(list(got)) == want
    assert list(cs.CPU(0, dtype=I32).new_like(range(size))) == list(range(size))


@pytest.mark.parametrize("position", [0, 1, 500, 16384, 16390])
@pytest.mark.parametrize("source", [list, tuple, iter])
def test_errors_name_the_position(position, source):
    values = [1] * 16400
    values[position] = 2**40
    with pytest.raises(OverflowError, match=rf"\b{position}\b.*1099511627776"):
        cs.CPU(0, dtype=I32).new_like(source(values))
    values[position] = "x"
    with pytest.raises(TypeError, match=rf"\b{position}\b.*str"):
        cs.CPU(0, dtype=I32).new_like(source(values))


def test_holes():
    for dtype in CONCRETE:
        zero = cs.storage_zero(dtype)
        for source in ([None, None], (None,) * 2, iter([None, None])):
            assert list(cs.CPU(0, dtype=dtype).new_like(source)) == [zero, zero]
        for source in ([zero, None], (zero, None), iter([zero, None])):
            with pytest.raises(TypeError, match=r"\b1\b"):
                cs.Generic(source, dtype=dtype)


@pytest.mark.parametrize("change", [lambda v: v.clear(), lambda v: v.extend([5] * 9), lambda v: v.reverse()])
@pytest.mark.parametrize("dtype", [F32, I32])
def test_a_list_that_changes_while_it_is_read(change, dtype):
    """What comes out are values really seen; never memory of the list that was."""

    class Changes:
        def __index__(self):
            change(values)
            return 7

    values = [1, 2, Changes(), 3, 4] + [6] * 100
    got = list(cs.CPU(0, dtype=dtype).new_like(values))
    assert got[:3] == [1, 2, 7] and set(got) <= {1, 2, 3, 4, 5, 6, 7}


def test_errors_of_user_code_pass_through():
    class Fails:
        def __index__(self):
            raise LookupError("mine")

    def source():
        yield 1.0
        raise LookupError("mine")

    for values in ([1, Fails()], (1, Fails()), iter([Fails()]), source()):
        with pytest.raises(LookupError, match="mine"):
            cs.CPU(0).new_like(values)


def test_not_iterable():
    for values in (None, 3, 1.5, object()):
        with pytest.raises(TypeError, match="iterable"):
            cs.CPU(0).new_like(values)


def test_errors_keep_the_reference_counts():
    import sys

    marker = 12345.678
    values = [marker] * 1000 + ["bad"]
    before = sys.getrefcount(marker)
    for source in (list, tuple, iter):
        assert bulk(F32, source(values)) is TypeError
    assert sys.getrefcount(marker) == before
