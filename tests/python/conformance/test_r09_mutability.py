# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Public mutability combines storage policy and ownership."""

import pytest

from helpers import line, state, tensor, values
from kinds import each, is_evictable, plain


def write_paths(cell, carrier):
    """Every way to write, as calls that would succeed on a mutable carrier."""
    paths = {
        "indexed": lambda: carrier.__setitem__(0, cell.good),
        "set_value": lambda: carrier.set_value(0, cell.good),
        "increment_version": lambda: carrier.increment_version(),
        "tensor": lambda: tensor(carrier).__setitem__(0, cell.good),
    }
    if cell.kind.scatters:
        source = tensor(cell.make(cell.samples(2)))
        paths["scatter"] = lambda: carrier.scatter(source, tensor(carrier), line(2))
    if hasattr(carrier, "grow"):
        paths["grow"] = lambda: carrier.grow(carrier.size() + 1)
    return paths


@each()
def test_query_an_immutable_carrier(cell):
    """Scenario: Query an immutable carrier: every write path uses the same answer."""
    c = cell.make(3, mutable=False)
    assert c.is_mutable() is False and c.is_owned() is False
    before = state(c)
    for name, write in write_paths(cell, c).items():
        with pytest.raises(RuntimeError):
            write()
        assert state(c) == before, name


@each()
def test_every_write_path_is_open_on_a_mutable_carrier(cell):
    """The same calls succeed when is_mutable() is True."""
    for name in write_paths(cell, cell.make(3)):
        c = cell.make(3)
        assert c.is_mutable() is True
        write_paths(cell, c)[name]()


@each()
def test_an_owned_carrier_is_not_publicly_mutable(cell):
    """A mutable carrier returns False while exclusively owned, except within the owner's access scope."""
    c = cell.make(3)
    token = c.claim()
    assert (c.is_owned(), c.is_mutable()) == (True, False)
    before = state(c)
    paths = write_paths(cell, c)
    paths["release"] = c.release
    for write in paths.values():
        with pytest.raises(RuntimeError):
            write()
    assert state(c) == before
    with token.access():
        assert (c.is_owned(), c.is_mutable()) == (True, True)
        c[0] = cell.good
    assert (c.is_owned(), c.is_mutable()) == (True, False)
    token.relinquish()
    assert (c.is_owned(), c.is_mutable()) == (False, True)
    c[1] = cell.good
    assert values(c)[:2] == [cell.good] * 2


@each()
def test_an_immutable_carrier_stays_so_in_the_owners_scope(cell):
    """An intrinsically immutable carrier shall always return False."""
    c = cell.make(3, mutable=False)
    token = c.claim()
    with token.access() as inside:
        assert inside is c and not c.is_mutable()
        for write in write_paths(cell, c).values():
            with pytest.raises(RuntimeError):
                write()


@each(is_evictable)
def test_query_an_owned_mutable_tier(cell):
    """Scenario: Query an owned mutable tier: the retained alias is owned and not mutable, and may be read."""
    h = cell.make(3)
    for tier in (h.primary, h.secondary):
        assert (tier.is_owned(), tier.is_mutable()) == (True, False)
        if tier.size():
            before = state(tier)
            for write in (
                write_paths(cell, tier).values()
                if plain(cell.kind)
                else [lambda t=tier: t.set_value(0, cell.good)]
            ):
                with pytest.raises(RuntimeError):
                    write()
            assert state(tier) == before
        with pytest.raises(RuntimeError):
            tier.release()
        with pytest.raises(RuntimeError):
            tier.claim()
        with pytest.raises(RuntimeError):
            tier.increment_version()
    assert values(h.primary) == cell.samples(3)
    assert h.is_mutable() and not h.is_owned()


@each()
def test_the_answers_are_bools_and_survive_release(cell):
    """Decision E: after release is_mutable() keeps the answer it would give a live carrier."""
    for mutable in (True, False):
        c = cell.make(2, mutable=mutable)
        assert c.is_mutable() is mutable
        c.release()
        assert c.is_mutable() is mutable
        assert c.is_owned() is False
