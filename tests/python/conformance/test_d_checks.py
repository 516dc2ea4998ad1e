# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions D: checks and their order, re-entrancy."""

import carrier_storage as cs
import pytest

from customs import FloatLike, IndexLike
from helpers import state, tensor, values
from kinds import BOOL, F32, I32, each, each_kind, is_evictable

HUGE = 2**70


def access_calls(carrier, index, value):
    """Every element access, as (is a write, call)."""
    return [
        (False, lambda: carrier[index]),
        (False, lambda: carrier.get_value(index)),
        (True, lambda: carrier.__setitem__(index, value)),
        (True, lambda: carrier.set_value(index, value)),
    ]


def expect(carrier, index, value, read, write):
    before = state(carrier)
    for is_write, call in access_calls(carrier, index, value):
        error = write if is_write else read
        if error is not None:
            with pytest.raises(error):
                call()
        else:
            call()
    assert state(carrier) == before


@each()
def test_index_type_comes_first(cell):
    """Index type, before released, mutable, bounds and value."""
    for c in (cell.make(), cell.released(), cell.make(mutable=False), cell.released(mutable=False)):
        expect(c, "0", object(), TypeError, TypeError)
        expect(c, 1.5, object(), TypeError, TypeError)


@each()
def test_released_comes_before_bounds_and_value(cell):
    """Released (RuntimeError), before mutability, bounds and value."""
    for c in (cell.released(), cell.released(mutable=False)):
        for index in (0, 99, -1, HUGE):
            expect(c, index, object(), RuntimeError, RuntimeError)


@each()
def test_mutability_comes_before_bounds_and_value(cell):
    """Publicly mutable (RuntimeError), before bounds and value; reading: the same without mutability."""
    c = cell.make(mutable=False)
    for index in (99, -1, HUGE, -HUGE):
        expect(c, index, cell.good, IndexError, RuntimeError)
    expect(c, 0, object(), None, RuntimeError)
    c = cell.make()
    token = c.claim()
    for index in (99, -1, HUGE):
        expect(c, index, object(), IndexError, RuntimeError)
    token.relinquish()


@each()
def test_bounds_come_before_value(cell):
    """Bounds (IndexError), before value."""
    c = cell.make()
    for index in (3, -1, HUGE, -HUGE):
        expect(c, index, object(), IndexError, IndexError)
        expect(c, IndexLike(index), object(), IndexError, IndexError)
    for _, call in access_calls(c, 0, object())[2:]:
        with pytest.raises(TypeError):
            call()


@each()
def test_a_refused_write_never_converts_the_value(cell):
    """The value is looked at last: no user code of it runs when an earlier check fails."""

    def seen():
        raise AssertionError("the value was converted")

    value = IndexLike(1, seen) if cell.dtype is I32 else FloatLike(1.0, seen)
    for c, index in (
        (cell.released(), 0),
        (cell.make(mutable=False), 0),
        (cell.make(), 99),
        (cell.make(), "0"),
    ):
        for call in (
            lambda c=c, i=index: c.__setitem__(i, value),
            lambda c=c, i=index: c.set_value(i, value),
        ):
            with pytest.raises((RuntimeError, IndexError, TypeError)):
                call()


@each(is_evictable)
def test_evicted_is_checked_where_released_is(cell):
    """\"evicted\" is checked where \"released\" is: after the types, before the rest."""
    for c in (cell.evicted(), cell.evicted(mutable=False)):
        expect(c, "0", object(), TypeError, TypeError)
        for index in (0, 99, -1, HUGE):
            expect(c, index, object(), RuntimeError, RuntimeError)
        for _, call in access_calls(c, 0, object()):
            with pytest.raises(RuntimeError, match="promote"):
                call()


@each_kind()
def test_argument_types_come_before_the_state(cell):
    """The type of an argument is checked before the state of the carrier: every method that takes one."""
    for c in (cell.released(), cell.make()):
        calls = [
            lambda c=c: c.new_like(3),
            lambda c=c: c.new_like([], dtype="Float32"),
            lambda c=c: c.new_like([], mutable=1),
            lambda c=c: c.allocate_like("3"),
            lambda c=c: c.allocate_like(-1, mutable=1),
            lambda c=c: c.allocate_like(-1, dtype="Float32"),
            lambda c=c: c.supports_storage_dtype(1),
            lambda c=c: c.dispatch_op(3),
            lambda c=c: c.dispatch_op(None),
            lambda c=c: cs.Tensor(c, "0", cs.Layout(cs.Shape(9), cs.Stride(9))),
        ]
        if cell.kind.scatters:
            calls += [lambda c=c: c.scatter(1, 2, 3), lambda c=c: c.scatter(None, None, None, "0")]
        if hasattr(c, "grow"):
            calls += [lambda c=c: c.grow("3"), lambda c=c: c.grow(1.5), lambda c=c: c.grow(None)]
        for call in calls:
            with pytest.raises(TypeError):
                call()


@each_kind()
def test_grow_order(cell):
    """grow: type, state, then the number."""
    c = cell.make()
    if not hasattr(c, "grow"):
        with pytest.raises(AttributeError):
            c.grow(1)
        return
    with pytest.raises(ValueError):
        c.grow(1)
    with pytest.raises(ValueError):
        c.grow(-1)
    with pytest.raises((MemoryError, OSError, OverflowError)):
        c.grow(HUGE)
    c.release()
    for size in (-1, 1, HUGE):
        with pytest.raises(RuntimeError):
            c.grow(size)


@each()
def test_get_value_and_brackets_never_differ(cell):
    """get_value/set_value and [] never differ, in result, error type and message."""

    def outcome(call):
        try:
            return ("value", repr(call()))
        except Exception as error:
            return type(error), str(error)

    subjects = [cell.make, cell.released, lambda: cell.make(mutable=False)]
    if cell.kind.evictable:
        subjects.append(cell.evicted)
    for make in subjects:
        for index in (0, 2, 3, -1, HUGE, "0", 1.0, None, True):
            for value in (cell.good, object(), None, HUGE**9):
                a, b = make(), make()
                (_, get), (_, got), (_, put), (_, set_) = (
                    access_calls(a, index, value)[0],
                    access_calls(b, index, value)[1],
                    access_calls(a, index, value)[2],
                    access_calls(b, index, value)[3],
                )
                assert outcome(get)[0] == outcome(got)[0]
                x, y = outcome(put), outcome(set_)
                assert x[0] == y[0], (index, value, x, y)
                assert a.version == b.version


def reentrant_values(cell, act):
    """A value of the dtype that runs `act` while it is converted; None where no user code runs."""
    return {F32: FloatLike(1.0, act), I32: IndexLike(1, act)}.get(cell.dtype)


@each(dtypes=(F32, I32))
def test_releasing_inside_the_value(cell):
    """User code inside a call may release: the call re-checks its preconditions, and fails cleanly."""
    for put in (
        lambda c, v: c.__setitem__(0, v),
        lambda c, v: c.set_value(0, v),
        lambda c, v: tensor(c).__setitem__(0, v),
    ):
        c = cell.make()
        with pytest.raises(RuntimeError):
            put(c, reentrant_values(cell, c.release))
        assert c.is_released() and c.version == 0


@each()
def test_releasing_inside_the_index(cell):
    """... and so for the index, of reads and writes, and for the size of a factory."""
    for k in range(4):
        c = cell.make()
        call = access_calls(c, IndexLike(0, c.release), cell.good)[k][1]
        with pytest.raises(RuntimeError):
            call()
        assert c.is_released() and c.version == 0
    c = cell.make()
    assert values(c.allocate_like(IndexLike(2, c.release))) == [cell.zero] * 2


@each(dtypes=(F32, I32))
def test_claiming_inside_the_value(cell):
    """... it may take ownership: the write is refused."""
    tokens = []
    c = cell.make()
    with pytest.raises(RuntimeError):
        c[0] = reentrant_values(cell, lambda: tokens.append(c.claim()))
    assert (values(c), c.version, c.is_owned()) == (cell.samples(3), 0, True)


@each(dtypes=(F32, I32))
def test_writing_inside_the_value(cell):
    """... it may mutate the same carrier: both writes count, each once."""
    c = cell.make()
    c[0] = reentrant_values(cell, lambda: c.__setitem__(0, cell.good))
    assert (c[0], c.version) == (1, 2)
    c[1] = reentrant_values(cell, lambda: c.set_value(2, cell.good))
    assert (c[1], c[2], c.version) == (1, cell.good, 4)


@each(lambda kind: kind.evictable, dtypes=(F32, I32))
def test_evicting_inside_the_value(cell):
    """... it may move the values: the write meets an evicted hierarchy and is refused."""
    for index, value in ((0, "value"), ("index", cell.good)):
        h = cell.make()
        if index == "index":
            index = IndexLike(0, h.evict)
        else:
            value = reentrant_values(cell, h.evict)
        with pytest.raises(RuntimeError):
            h[index] = value
        assert h.is_evicted() and h.version == 0
        h.promote()
        assert values(h) == cell.samples(3)
    h = cell.make()
    h[0] = reentrant_values(cell, lambda: (h.evict(), h.promote()))
    assert (h[0], h.version) == (1, 1)


@each_kind()
def test_releasing_the_prototype_inside_its_iterable(cell):
    """The receiver released while new_like runs: the result holds exactly the values."""
    c = cell.make()

    def source():
        yield from cell.samples(2)
        c.release()
        yield from cell.samples(3)

    assert values(c.new_like(source())) == [*cell.samples(2), *cell.samples(3)]
    assert c.is_released()


@each_kind(lambda kind: kind.name in {"cpu", "generic", "file", "cpu_file", "custom"})
def test_a_list_that_changes_while_it_is_read(cell):
    """A source that changes or shrinks while it is read is the caller's error and never unsafe."""
    for act in (
        lambda s: s.clear(),
        lambda s: s.append(cell.good),
        lambda s: s.pop(),
        lambda s: s.__setitem__(-1, "x"),
    ):
        for n in (3, 500):
            source = []
            source += cell.samples(n)
            source[1] = reentrant_values(cell, lambda a=act, s=source: a(s))
            try:
                made = cell.make(1).new_like(source)
            except (TypeError, ValueError, RuntimeError, IndexError):
                continue
            assert made.size() in range(n + 2) and all(type(v) is cell.type for v in values(made))


@each_kind()
def test_iterables_that_reenter(cell):
    """An iterable may use the receiver: write it, move it, make others of it."""
    c = cell.make()

    def source():
        c[0] = cell.good
        yield c[0]
        if cell.kind.evictable:
            c.evict()
            c.promote()
        yield c.new_like([cell.good])[0]
        yield c.new_like(iter([cell.good]))[0]

    assert values(c.new_like(source())) == [cell.good] * 3
    assert c.version == 1


@each(is_evictable)
def test_constructor_arguments_of_a_hierarchy(cell):
    """The arguments of a constructor: TypeError first, whatever the state of the other tier."""
    gone = cell.released()
    for args in ((gone, None), (None, gone), (3, 4), (gone,), ()):
        with pytest.raises(TypeError):
            cs.Evictable(*args)


def test_bool_is_an_integer_for_sizes_but_not_for_pointers():
    """bool is an integer for indices, sizes and offsets, as in Python, but not for pointer or layout leaves."""
    assert cs.CPU(True).size() == 1
    c = cs.CPU(2, dtype=BOOL)
    c[True] = True
    assert (c[1], c[True], c[False]) == (True, True, False)
    assert c.allocate_like(True).size() == 1
    assert cs.Tensor(c, True, cs.Layout(cs.Shape(1), cs.Stride(1)))[0] is True
    f = cs.FileBacked(dtype=F32)
    f.grow(True)
    assert f.size() == 1
    one = cs.Tensor(c, 0, cs.Layout(cs.Shape(1), cs.Stride(1)))
    c.scatter(one, tensor(c), cs.Layout(cs.Shape(1), cs.Stride(1)), True)
    assert c[1] is False
    with pytest.raises(TypeError):
        cs.CPU(1, True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cs.CPU.__new__(cs.CPU)[0],
        lambda: cs.CPU.__new__(cs.CPU).size(),
        lambda: len(cs.Generic.__new__(cs.Generic)),
        lambda: cs.FileBacked.__new__(cs.FileBacked).path,
        lambda: cs.Evictable.__new__(cs.Evictable).evict(),
        lambda: cs.CPU.get_value(3, 0),
        lambda: cs.Carrier.size(object()),
    ],
)
def test_objects_that_were_never_made(call):
    """Nothing aborts: an instance without its constructor, a method on something else."""
    with pytest.raises(TypeError):
        call()


def test_a_constructor_runs_once():
    """A second __init__ does not touch the storage."""
    c = cs.CPU(2)
    c[0] = 1.0
    for again in (lambda: c.__init__(5), lambda: c.__init__("x")):
        with pytest.raises((TypeError, RuntimeError)):
            again()
    assert values(c) == [1.0, 0.0]
