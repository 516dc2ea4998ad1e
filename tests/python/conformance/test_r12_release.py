# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Release permanently invalidates storage access."""

import pytest

from helpers import line, tensor, values
from kinds import each, is_evictable


def uses(cell, carrier, view):
    calls = {
        "read": lambda: carrier[0],
        "get_value": lambda: carrier.get_value(0),
        "write": lambda: carrier.__setitem__(0, cell.good),
        "set_value": lambda: carrier.set_value(0, cell.good),
        "increment_version": lambda: carrier.increment_version(),
        "claim": lambda: carrier.claim(),
        "Tensor": lambda: tensor(carrier, 1),
        "Tensor read": lambda: view[0],
        "Tensor write": lambda: view.__setitem__(0, cell.good),
        "dispatch_op": lambda: carrier.dispatch_op("add"),
    }
    if cell.kind.scatters:
        calls["scatter"] = lambda: carrier.scatter(view, view, line(view.size()))
    for name, call in {
        "pointer": lambda: carrier.pointer(),
        "grow": lambda: carrier.grow(9),
        "evict": lambda: carrier.evict(),
        "promote": lambda: carrier.promote(),
    }.items():
        if hasattr(carrier, name):
            calls[name] = call
    return calls


@each()
def test_release_a_carrier_twice(cell):
    """Scenario: Release a carrier twice."""
    c = cell.make(3)
    assert c.is_released() is False
    assert c.release() is None
    assert c.is_released() is True
    assert c.release() is None
    assert c.is_released() is True and c.size() == 0 and len(c) == 0


@each()
def test_operations_that_need_storage_fail(cell):
    """After release, element access, mutation, and operations that require existing storage: RuntimeError."""
    c = cell.make(3)
    view = tensor(c)
    c.release()
    for name, call in uses(cell, c, view).items():
        with pytest.raises(RuntimeError):
            call()
            raise AssertionError(name)
    assert c.version == 0


@each()
def test_identity_and_support_remain(cell):
    """dtype(), structural dtype support, and new_like shall remain usable."""
    c = cell.released()
    assert c.dtype() is cell.dtype
    assert c.supports_storage_dtype(cell.dtype) is True
    assert values(c.new_like(cell.samples(2))) == cell.samples(2)
    assert c.version == 0 and "released" in repr(c)


@each()
def test_direct_release_of_an_owned_carrier(cell):
    """Direct release of an owned carrier fails; the owner may release it through its access scope."""
    c = cell.make(3)
    token = c.claim()
    with pytest.raises(RuntimeError):
        c.release()
    assert not c.is_released() and values(c) == cell.samples(3)
    with token.access() as inside:
        inside.release()
    assert c.is_released()


@each()
def test_an_immutable_carrier_can_be_released(cell):
    """Decision E: an immutable carrier that nobody owns can be released."""
    c = cell.make(3, mutable=False)
    c.release()
    assert c.is_released()


@each(is_evictable)
def test_releasing_a_hierarchy_releases_both_tiers(cell):
    """Releasing an Evictable shall release both tiers and prevent subsequent residency transitions."""
    for h in (cell.make(3), cell.evicted(3)):
        tiers = h.primary, h.secondary
        h.release()
        assert all(t.is_released() for t in tiers)
        for move in (h.evict, h.promote):
            with pytest.raises(RuntimeError):
                move()
        h.release()
        assert h.is_released() and all(not t.is_owned() for t in tiers)


@each(is_evictable)
def test_releasing_a_hierarchy_removes_the_files(cell):
    """Releasing a FileBacked removes its file, as a tier too, however deep."""

    def paths(carrier):
        if hasattr(carrier, "path"):
            return [carrier.path]
        return paths(carrier.primary) + paths(carrier.secondary) if hasattr(carrier, "primary") else []

    h = cell.make(3)
    h.evict()
    found = paths(h)
    h.release()
    assert not any(p.exists() for p in found)
