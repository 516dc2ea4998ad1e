# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Element slots, iteration, and what they do about carriers that are not there yet or no more."""

import copy
import gc
import operator
import pickle
import warnings
import weakref

import pytest
from carrier_storage import CPU, Carrier, DType, Evictable, FileBacked, Generic


def three(kind):
    values = [1.5, 2.5, 3.5]
    if kind is CPU:
        return CPU(0).new_like(values)
    if kind is Generic:
        return Generic(values, dtype=DType.Float32)
    if kind is FileBacked:
        return FileBacked(dtype=DType.Float32).new_like(values)
    return Evictable(CPU(0).new_like(values), FileBacked(dtype=DType.Float32))


KINDS = [CPU, Generic, FileBacked, Evictable]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)


READS = [operator.getitem, lambda c, index: c.get_value(index)]
WRITES = [operator.setitem, lambda c, index, value: c.set_value(index, value)]


@every_kind
def test_subscript_and_methods_are_one_path(kind):
    c = three(kind)
    for index in range(3):
        assert c[index] == c.get_value(index)
    refused = {
        IndexError: (-1, 3, 2**31, 2**63, -(2**70), 2**70),
        TypeError: ("0", 1.0, None, slice(0, 1), ..., (0,)),
    }
    for error, indices in refused.items():
        for index in indices:
            for read in READS:
                with pytest.raises(error):
                    read(c, index)
            for write in WRITES:
                with pytest.raises(error):
                    write(c, index, 1.0)
    assert c.version == 0
    c[True] = 7
    c.set_value(2, True)
    assert list(c) == [1.5, 7.0, 1.0]
    assert c.version == 2


@every_kind
def test_slots_are_not_deleted(kind):
    c = three(kind)
    with pytest.raises(TypeError, match="cannot be deleted"):
        del c[0]
    assert len(c) == 3


@every_kind
def test_iteration(kind):
    c = three(kind)
    assert list(c) == [1.5, 2.5, 3.5]
    assert list(reversed(c)) == [3.5, 2.5, 1.5]
    assert 2.5 in c
    assert 9 not in c
    assert tuple(c) == (*c,)
    ahead = iter(c)
    assert operator.length_hint(ahead) == 3
    next(ahead)
    assert operator.length_hint(ahead) == 2
    c[1] = 8.0
    assert list(ahead) == [8.0, 3.5]
    assert next(ahead, None) is None
    assert operator.length_hint(ahead) == 0


@every_kind
def test_iterator_meets_release(kind):
    c = three(kind)
    forward, backward, done = iter(c), reversed(c), iter(c)
    next(forward)
    list(done)
    c.release()
    for it in (forward, backward):
        with pytest.raises(RuntimeError, match="released"):
            next(it)
    assert next(done, "end") == "end"
    for begin in (iter, reversed, list):
        with pytest.raises(RuntimeError, match="released"):
            begin(c)
    assert len(c) == 0


def test_iterator_meets_eviction():
    h = three(Evictable)
    it = iter(h)
    next(it)
    h.evict()
    with pytest.raises(RuntimeError, match="promote"):
        next(it)
    h.promote()
    assert list(it) == [2.5, 3.5]


def test_iterator_follows_growth():
    f = three(FileBacked)
    it = iter(f)
    list(zip(it, range(2), strict=False))
    f.grow(4)
    assert list(it) == [0.0]


def test_iterator_keeps_its_carrier():
    c = three(CPU)
    alive = weakref.ref(c)
    it = iter(c)
    del c
    gc.collect()
    assert alive() is not None
    assert list(it) == [1.5, 2.5, 3.5]
    assert alive() is None


def test_iterator_class_is_not_for_users():
    with pytest.raises(TypeError):
        type(iter(CPU(1)))(CPU(1))


def test_unbound_methods_take_carriers_only():
    for call in (
        lambda: Carrier.get_value(3, 1),
        lambda: Carrier.size(object()),
        lambda: CPU.pointer(three(Generic)),
    ):
        with pytest.raises(TypeError):
            call()


@every_kind
def test_bare_instances_are_type_errors(kind):
    """An instance whose constructor never ran holds nothing; every use says so, and nothing crashes."""
    bare = kind.__new__(kind)
    uses = [
        lambda c: c[0],
        lambda c: operator.setitem(c, 0, 1.0),
        len,
        iter,
        reversed,
        lambda c: c.size(),
        lambda c: c.version,
        lambda c: c.release(),
        lambda c: c.new_like([1.0]),
        lambda c: Evictable(c, CPU(1)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses:
            with pytest.raises(TypeError, match="not initialized"):
                use(bare)
    assert "not initialized" in repr(bare)


def test_a_reused_instance_begins_afresh():
    """Instances of small kinds are pooled: a new one must not see what the last one held."""
    c = three(CPU)
    del c
    with pytest.raises(TypeError):
        CPU.__new__(CPU)[0]


@every_kind
def test_constructors_run_once(kind):
    c = three(kind)
    arguments = {
        CPU: ((3,), {}),
        Evictable: ((CPU(1), CPU(1)), {}),
        Generic: (([1.0],), {"dtype": DType.Float32}),
    }
    args, kwargs = arguments.get(kind, ((), {"dtype": DType.Float32}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="initialized already"):
            c.__init__(*args, **kwargs)
    assert list(c) == [1.5, 2.5, 3.5]


@every_kind
def test_identity_weak_references_and_hash(kind):
    c, other = three(kind), three(kind)
    assert c == c
    assert c != other
    assert len({c, other, c}) == 2
    alive = weakref.ref(c)
    assert alive() is c
    del c
    gc.collect()
    assert alive() is None


def test_tokens_are_not_copied():
    token = CPU(1).claim()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(token)


class Releasing:
    """A number whose conversion releases a carrier."""

    def __init__(self, carrier):
        self.carrier = carrier

    def __float__(self):
        self.carrier.release()
        return 1.0

    def __index__(self):
        self.carrier.release()
        return 0


@every_kind
def test_conversions_may_release_the_carrier(kind):
    c = three(kind)
    with pytest.raises(RuntimeError):
        c[0] = Releasing(c)
    assert c.version == 0
    c = three(kind)
    with pytest.raises(RuntimeError):
        c[Releasing(c)]
    c = three(kind)
    with pytest.raises(RuntimeError):
        c[Releasing(c)] = 1.0
    assert c.version == 0


def test_the_index_is_converted_before_the_state_is_looked_at():
    c = CPU(1)
    c.release()
    with pytest.raises(TypeError):
        c["0"]
    with pytest.raises(RuntimeError):
        c[5]
