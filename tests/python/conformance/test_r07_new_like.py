# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: new_like materializes values in matching storage."""

import itertools

import carrier_storage as cs
import pytest

from helpers import state, tensor, values
from kinds import each, each_kind, is_evictable

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool

ITERABLES = {
    "list": list,
    "tuple": tuple,
    "generator": lambda vs: (v for v in vs),
    "iterator": iter,
    "filter": lambda vs: filter(lambda v: True, vs),
    "chain": lambda vs: itertools.chain(vs),
    "dict": lambda vs: dict(enumerate(vs)).values(),
    "getitem": lambda vs: _OldSequence(vs),
}


class _OldSequence:
    def __init__(self, items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]


@each()
def test_preserve_dtype_by_default(cell):
    """Scenario: Preserve dtype by default."""
    c = cell.make(2)
    before = state(c)
    for keywords in ({}, {"dtype": None}):
        made = c.new_like(cell.samples(5), **keywords)
        assert type(made) is type(c) and made is not c
        assert made.dtype() is cell.dtype and values(made) == cell.samples(5)
        assert made.is_mutable() and not made.is_owned() and not made.is_released() and made.version == 0
    assert state(c) == before


@each()
@pytest.mark.parametrize("iterable", ITERABLES.values(), ids=ITERABLES)
def test_values_are_any_iterable(cell, iterable):
    """new_like consumes the iterable values; the result has as many slots."""
    c = cell.make(1)
    for n in (0, 1, 7, 300):
        data = cell.samples(n)
        made = c.new_like(iterable(data))
        assert made.size() == n and repr(values(made)) == repr(data)


@each_kind()
def test_carriers_are_iterable_values(cell):
    """A carrier iterates, so it is a source; the receiver itself as well."""
    c = cell.make(3)
    assert values(c.new_like(c)) == values(c)
    assert values(c.new_like(cs.Generic(cell.samples(2), dtype=cell.dtype))) == cell.samples(2)


@each()
def test_override_factory_dtype(cell):
    """Scenario: Override factory dtype: the values are normalized for it."""
    c = cell.make(2)
    for dtype in cell.kind.dtypes:
        given, want = {
            F32: ([1, 0.1], [1.0, 0.10000000149011612]),
            I32: ([1, 2], [1, 2]),
            BOOL: ([True, False],) * 2,
        }[dtype]
        made = c.new_like(given, dtype=dtype)
        assert made.dtype() is dtype and repr(values(made)) == repr(want)
        assert type(made) is type(c)


@each()
def test_mutable_is_the_fresh_carriers_own(cell):
    """mutable states the fresh carrier's intrinsic mutability, whatever the receiver's."""
    for receiver in (cell.make(2), cell.make(2, mutable=False)):
        frozen = receiver.new_like(cell.samples(2), mutable=False)
        assert not frozen.is_mutable()
        with pytest.raises(RuntimeError):
            frozen[0] = cell.good
        open_ = receiver.new_like(cell.samples(2))
        assert open_.is_mutable()
        open_[0] = cell.good
        assert open_[0] == cell.good


@each()
def test_the_result_is_independent_of_the_receiver(cell):
    """Fresh storage independent of the receiver, usable even when the receiver has been released."""
    c = cell.make(3)
    made = c.new_like(cell.samples(3))
    c[0] = cell.good
    assert values(made) == cell.samples(3)
    made[1] = cell.good
    assert values(c) == [cell.good, *cell.samples(3)[1:]]
    c.release()
    assert made[1] == cell.good
    made[2] = cell.good


@each()
def test_release_create_fresh_storage_from_a_released_prototype(cell):
    """Release, Scenario: Create fresh storage from a released prototype."""
    c = cell.released()
    made = c.new_like(cell.samples(3))
    assert type(made) is type(c) and values(made) == cell.samples(3)
    made[0] = cell.good
    assert made[0] == cell.good and c.is_released()


@each(lambda kind: kind.holes)
def test_none_holes_are_zeros(cell):
    """A None hole contains the result dtype's zero (decision E: CPU, FileBacked, Metal, Evictable over such)."""
    for c in (cell.make(1), cell.released()):
        made = c.new_like([None, cell.good, None])
        assert repr(values(made)) == repr([cell.zero, cell.good, cell.zero])
        assert repr(values(c.new_like(v for v in [None] * 200))) == repr([cell.zero] * 200)
        assert values(c.new_like((None,))) == [cell.zero]


@each(lambda kind: not kind.holes)
def test_generic_storage_has_no_holes(cell):
    """Generic concrete storage shall contain only representable normalized values: None is a TypeError."""
    c = cell.make(1)
    for data in ([None], [cell.good, None], iter([cell.good, None])):
        with pytest.raises(TypeError):
            c.new_like(data)


@each()
def test_a_value_that_does_not_fit_fails_wholly(cell):
    """Each non-None value is stored using the result's normalization; a failure exposes nothing."""
    c = cell.make(2)
    before = state(c)
    bad = {F32: "1.0", I32: 1.5, BOOL: 1}[cell.dtype]
    for wrap in ITERABLES.values():
        for position in (0, 1, 299):
            data = cell.samples(300)
            data[position] = bad
            with pytest.raises(TypeError):
                c.new_like(wrap(data))
    if cell.dtype is I32:
        for wrap in (list, iter):
            with pytest.raises(OverflowError):
                c.new_like(wrap([1, 2**31]))
    assert state(c) == before


@each_kind()
def test_an_iterable_that_raises(cell):
    """An error of the iterable passes through, whenever it comes."""
    c = cell.make(2)
    before = state(c)

    def source(count):
        yield from cell.samples(count)
        raise LookupError(f"after {count}")

    for count in (0, 1, 7, 5000):
        with pytest.raises(LookupError, match=f"after {count}"):
            c.new_like(source(count))
    assert state(c) == before


@each_kind()
def test_arguments(cell):
    """values shall be iterable; decision D: mutable is an exact bool."""
    c = cell.make(2)
    for other in (None, 3, 1.5, object()):
        with pytest.raises(TypeError):
            c.new_like(other)
    for other in (0, 1, None, "yes"):
        with pytest.raises(TypeError):
            c.new_like([], mutable=other)
    for call in (lambda: c.new_like(), lambda: c.new_like([], True), lambda: c.new_like([], colour=1)):
        with pytest.raises(TypeError):
            call()
    assert values(c.new_like(values=cell.samples(1), mutable=True, dtype=None)) == cell.samples(1)


@each(is_evictable)
def test_a_hierarchy_makes_a_promoted_hierarchy(cell):
    """Promoted; primary by the primary tier's value factory, secondary fresh, mutable, empty; kinds preserved."""
    for receiver in (cell.make(3), cell.evicted(3), cell.released(3)):
        kinds_before = type(receiver.primary), type(receiver.secondary)
        made = receiver.new_like(cell.samples(4))
        assert type(made) is cs.Evictable and not made.is_evicted()
        assert (type(made.primary), type(made.secondary)) == kinds_before
        assert (type(made.primary).__name__, type(made.secondary).__name__) == cell.kind.tiers
        assert values(made.primary) == cell.samples(4)
        assert (made.primary.dtype(), made.secondary.dtype()) == (cell.dtype, cell.dtype)
        assert made.secondary.size() == 0
        assert made.primary.is_owned() and made.secondary.is_owned()
        made.evict()
        made.promote()
        assert values(made) == cell.samples(4)


@each(is_evictable)
def test_a_frozen_hierarchy_still_moves(cell):
    """mutable=False is the fresh hierarchy's; its secondary is mutable, so that eviction can write it."""
    made = cell.make(3).new_like(cell.samples(3), mutable=False)
    assert not made.is_mutable()
    made.evict()
    assert not made.is_mutable()
    made.promote()
    assert not made.is_mutable() and values(made) == cell.samples(3)
    assert tensor(made).is_mutable() is False


@each_kind()
def test_iteration_is_what_counts(cell):
    """values is iterable: a list or tuple that iterates otherwise gives what it iterates."""

    class Backwards(list):
        def __iter__(self):
            return reversed(self[:])

    class Twice(tuple):
        __slots__ = ()

        def __iter__(self):
            return itertools.chain(self[:], self[:])

    data = cell.samples(3)
    c = cell.make(1)
    assert values(c.new_like(Backwards(data))) == data[::-1]
    assert values(c.new_like(Twice(data))) == data * 2

    class NoIterator:
        def __iter__(self):
            return 3

    for bad in (NoIterator(), "12", {"a": 1}, b"1" if cell.dtype is BOOL else "1"):
        with pytest.raises(TypeError):
            c.new_like(bad)


@each_kind()
def test_a_length_hint_is_only_a_hint(cell):
    """A source that promises too much or too little gives what it yields."""

    class Liar:
        def __init__(self, hint):
            self.hint = hint

        def __iter__(self):
            return iter(cell.samples(5))

        def __len__(self):
            return self.hint

    class Hinting:
        def __init__(self, hint):
            self.hint, self.rest = hint, iter(cell.samples(5))

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.rest)

        def __length_hint__(self):
            return self.hint

    c = cell.make(1)
    for hint in (0, 1, 4, 6, 10_000, 2**40, 2**62):
        assert values(c.new_like(Liar(hint))) == cell.samples(5)
        assert values(c.new_like(Hinting(hint))) == cell.samples(5)
