# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions E: the life of a carrier."""

import collections.abc
import copy
import gc
import weakref

import carrier_storage as cs
import pytest

from customs import HookedCarrier
from helpers import tensor, values
from kinds import each, each_kind, is_evictable, plain


@each()
def test_what_still_answers_after_release(cell):
    """dtype(), version, is_mutable(), supports_storage_dtype, new_like, allocate_like (and path) still answer."""
    c = cell.make(3)
    c[0] = cell.good
    path = getattr(c, "path", None)
    c.release()
    assert (c.size(), len(c), c.version, c.is_mutable(), c.is_owned()) == (0, 0, 1, True, False)
    assert c.dtype() is cell.dtype and c.supports_storage_dtype(cell.dtype)
    assert c.new_like([]).size() == 0 and c.allocate_like(2).size() == 2
    assert getattr(c, "path", None) == path
    with pytest.raises(RuntimeError):
        list(c)
    assert c.is_released()


@each_kind()
def test_len_and_iteration(cell):
    """len(c) is size(); carriers iterate."""
    c = cell.make(5)
    assert len(c) == c.size() == 5
    assert list(c) == [*iter(c)] == cell.samples(5)
    assert list(cell.make(0)) == [] and len(cell.make(0)) == 0
    it = iter(c)
    assert iter(it) is it and next(it) == c[0]
    assert cell.samples(5)[2] in c
    assert object() not in c
    assert list(reversed(c)) == cell.samples(5)[::-1]


@each()
def test_truth_does_not_touch_the_values(cell):
    """len(c) is size(), so a carrier is true when it has slots."""
    assert bool(cell.make(1)) is True and bool(cell.make(0)) is False


@each_kind()
def test_an_iterator_meets_what_happens_to_its_carrier(cell):
    """Iteration reads slot by slot: it sees writes, and fails when the carrier is released."""
    c = cell.make(3)
    it = iter(c)
    next(it)
    c[1] = cell.good
    assert next(it) == cell.good
    c.release()
    with pytest.raises(RuntimeError):
        next(it)


@each()
def test_repr(cell):
    """repr names kind, size, dtype, mutability, version, state."""
    c = cell.make(3)
    c[0] = cell.good
    text = repr(c)
    for word in (type(c).__name__, "3", cell.dtype.name, "mutable=True", "version=1"):
        assert word in text
    assert "released" not in text and "evicted" not in text
    token = c.claim()
    assert "owned" in repr(c)
    token.relinquish()
    assert "owned" not in repr(c)
    assert "mutable=False" in repr(cell.make(1, mutable=False))
    if cell.kind.evictable:
        c.evict()
        assert "evicted" in repr(c) and "size=3" in repr(c)
    c.release()
    assert "released" in repr(c)


@each()
def test_equality_is_identity(cell):
    """Equality is identity."""
    a, b = cell.make(3), cell.make(3)
    assert a == a and a != b and (a == b) is False and hash(a) != hash(b)
    assert len({a, b, a}) == 2
    with pytest.raises(TypeError):
        a < b  # noqa: B015


@each()
def test_weak_references_and_lifetime(cell, collected):
    """Carriers are weakly referenceable and die with their last reference."""
    c = cell.make(3)
    dead = []
    ref = weakref.ref(c, dead.append)
    assert ref() is c
    t = tensor(c)
    del c
    assert ref() is not None and ref() is t.carrier
    del t
    gc.collect()
    assert ref() is None and len(dead) == 1


class Holder:
    pass


@each(plain)
def test_garbage_collection(cell, collected):
    """Carriers take part in garbage collection: a cycle through Tensors and tokens goes."""
    holder = Holder()
    c = cell.make(3)
    ref = weakref.ref(c)
    holder.stuff = [c, tensor(c), holder]
    if cell.kind.custom:
        c.holder = holder  # a cycle through the carrier itself
    del c, holder
    gc.collect()
    assert ref() is None


@each_kind(lambda kind: kind.name in {"custom_cpu", "cpu_custom"})
def test_garbage_collection_through_a_hierarchy(cell, collected):
    """A cycle that runs through a hierarchy's tier, and one through a Tensor over it."""
    h = cell.make(3)
    tier = h.primary if cell.kind.name == "custom_cpu" else h.secondary
    refs = [weakref.ref(h), weakref.ref(tier)]
    tier.loop = [h, tensor(h), h.claim()]
    del h, tier
    gc.collect()
    assert [r() for r in refs] == [None, None]


@each_kind(is_evictable)
def test_tiers_outlive_their_hierarchy(cell, collected):
    """Decision H: destroying an unreleased hierarchy relinquishes both tiers and releases neither."""
    h = cell.make(3)
    tiers = h.primary, h.secondary
    ref = weakref.ref(h)
    del h
    gc.collect()
    assert ref() is None
    assert all(not t.is_owned() and not t.is_released() for t in tiers)
    assert values(tiers[0]) == cell.samples(3)
    tiers[0][0] = cell.good
    tiers[0].release()


def test_live_objects_are_never_collected(collected):
    """A carrier that a local variable holds survives the collection of a cycle that holds it too."""
    c = cs.CPU(2)
    c[0] = 7.0
    for _ in range(3):
        knot = [tensor(c), tensor(c), c.new_like([1.0])]
        knot.append(knot)
        del knot
        gc.collect()
    assert values(c) == [7.0, 0.0]
    ref = weakref.ref(c)
    assert ref() is c


@each_kind(is_evictable)
def test_identity_of_tiers(cell, collected):
    """primary and secondary are the exact objects, kept with their attributes while the hierarchy lives."""
    h = cell.make(2)
    assert h.primary is h.primary and h.secondary is h.secondary
    ids = id(h.primary), id(h.secondary)
    gc.collect()
    assert ids == (id(h.primary), id(h.secondary))


def test_a_tier_written_in_python_survives_inside():
    """... a Python tier keeps its state though only the hierarchy holds it."""
    tier = HookedCarrier([1.0, 2.0], cs.DType.Float32)
    tier.label = "mine"
    h = cs.Evictable(tier, cs.CPU(1))
    del tier
    gc.collect()
    assert h.primary.label == "mine" and values(h) == [1.0, 2.0]


@each()
def test_an_iteration_is_no_alias_of_a_sequence(cell):
    """Carriers are not sequences: no slices, no concatenation."""
    c = cell.make(3)
    for call in (lambda: c[0:1], lambda: c + c, lambda: c * 2):
        with pytest.raises(TypeError):
            call()
    assert isinstance(c, collections.abc.Sized) and isinstance(c, collections.abc.Iterable)


@each_kind(lambda kind: kind.custom and not kind.evictable)
def test_custom_carriers_do_not_copy_by_accident(cell):
    """A carrier written in Python has no copy of its own unless it says so (__reduce__)."""
    with pytest.raises(TypeError):
        copy.copy(cell.make(2))
