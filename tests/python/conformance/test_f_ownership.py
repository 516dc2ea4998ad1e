# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions F: exclusive ownership by token."""

import copy
import gc
import threading

import carrier_storage as cs
import pytest

from helpers import line, state, tensor, values
from kinds import each, each_kind, is_evictable


def in_thread(call):
    """The result of `call` in another thread, or the error it raised."""
    seen = []

    def work():
        try:
            seen.append(call())
        except BaseException as error:
            seen.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    if isinstance(seen[0], BaseException):
        raise seen[0]
    return seen[0]


@each()
def test_claim_and_relinquish(cell):
    """claim() takes exclusive ownership; relinquish() ends it."""
    c = cell.make(3)
    token = c.claim()
    assert isinstance(token, cs.Ownership)
    assert c.is_owned() and not c.is_mutable()
    assert token.relinquish() is None
    assert not c.is_owned() and c.is_mutable()
    assert c.version == 0


@each()
def test_claim_is_refused(cell):
    """RuntimeError when released or owned."""
    c = cell.make(3)
    token = c.claim()
    before = state(c)
    with pytest.raises(RuntimeError):
        c.claim()
    with token.access(), pytest.raises(RuntimeError):
        c.claim()
    assert state(c) == before
    token.relinquish()
    c.release()
    with pytest.raises(RuntimeError):
        c.claim()


@each()
def test_the_access_scope(cell):
    """Inside it writes, scatter, release and transitions work and is_mutable() is the intrinsic answer."""
    c = cell.make(3)
    token = c.claim()
    with token.access() as inside:
        assert inside is c and c.is_mutable() and c.is_owned()
        c[0] = cell.good
        c.set_value(1, cell.good)
        tensor(c)[2] = cell.good
        c.increment_version()
        assert c.version == 4
        if cell.kind.scatters:
            c.scatter(tensor(cell.make(1)), tensor(c), line(1))
            assert c.version == 5
        if cell.kind.evictable:
            c.evict()
            c.promote()
        if hasattr(c, "grow"):
            c.grow(5)
    assert not c.is_mutable()
    with token.access():
        c.release()
    assert c.is_released()


@each_kind()
def test_the_scope_is_reentrant(cell):
    """The access scope is re-entrant, and one scope object may be entered again."""
    c = cell.make(3)
    token = c.claim()
    scope = token.access()
    with scope:
        with token.access() as inner:
            inner[0] = cell.good
        c[1] = cell.good  # still inside the outer one
        with scope:
            c[2] = cell.good
        assert c.is_mutable()
    assert not c.is_mutable()
    with scope:
        assert c.is_mutable()
    assert c.version == 3


@each_kind()
def test_the_scope_ends_with_an_exception(cell):
    """The scope ends with an exception, which passes through; ownership stays."""
    c = cell.make(3)
    token = c.claim()
    with pytest.raises(LookupError, match="mine"), token.access():
        c[0] = cell.good
        raise LookupError("mine")
    assert c.is_owned() and not c.is_mutable() and c[0] == cell.good
    token.relinquish()


@each_kind()
def test_a_retained_alias_outside_the_scope(cell):
    """Outside: is_owned(), not is_mutable(), may read, and gets RuntimeError for the rest."""
    c = cell.make(3)
    t = tensor(c)
    token = c.claim()
    before = state(c)
    assert list(c) == [t[i] for i in range(3)] == cell.samples(3)
    rest = [
        lambda: c.__setitem__(0, cell.good),
        lambda: c.set_value(0, cell.good),
        lambda: t.__setitem__(0, cell.good),
        c.release,
        c.claim,
        c.increment_version,
        lambda: cs.Evictable(c, cs.CPU(1, dtype=cell.dtype)),
        lambda: cs.Evictable(cs.CPU(1, dtype=cell.dtype), c),
    ]
    if cell.kind.scatters:
        rest.append(lambda: c.scatter(t, t, line(3)))
    if cell.kind.evictable:
        rest += [c.evict, c.promote]
    if hasattr(c, "grow"):
        rest.append(lambda: c.grow(9))
    for call in rest:
        with pytest.raises(RuntimeError):
            call()
        with pytest.raises(RuntimeError):
            in_thread(call)
    assert state(c) == before
    assert c.new_like(c).is_mutable() and c.allocate_like(1).is_mutable()
    token.relinquish()


@each_kind()
def test_the_scope_is_bound_to_the_entering_thread(cell):
    """Another thread sees is_owned() == True, is_mutable() == False, may read, and gets RuntimeError for the rest."""
    c = cell.make(3)
    token = c.claim()
    with token.access():
        assert in_thread(lambda: (c.is_owned(), c.is_mutable(), list(c))) == (True, False, cell.samples(3))
        for call in (lambda: c.__setitem__(0, cell.good), c.release, c.claim, token.relinquish):
            with pytest.raises(RuntimeError):
                in_thread(call)
        with pytest.raises(RuntimeError):
            in_thread(lambda: token.access().__enter__())
        assert c.is_mutable()

    def elsewhere():
        with token.access():
            c[0] = cell.good
            return c.is_mutable()

    assert in_thread(elsewhere) is True
    assert c[0] == cell.good and not c.is_mutable()


@each()
def test_a_token_that_dies_unspent(cell, collected):
    """relinquish() ends it, and so does a token that dies unspent."""
    c = cell.make(3)
    token = c.claim()
    del token
    gc.collect()
    assert not c.is_owned() and c.is_mutable()
    c[0] = cell.good
    c.claim()
    assert not c.is_owned()


@each_kind()
def test_a_scope_keeps_its_token(cell, collected):
    """The scope of a token that nobody else holds works to its end."""
    c = cell.make(3)
    with c.claim().access():
        gc.collect()
        assert c.is_owned()
        c[0] = cell.good
    gc.collect()
    assert not c.is_owned() and c[0] == cell.good


@each_kind()
def test_a_spent_token(cell):
    """A token that is spent or foreign is a RuntimeError."""
    c = cell.make(3)
    token = c.claim()
    scope = token.access()
    token.relinquish()
    with pytest.raises(RuntimeError):
        token.relinquish()
    with pytest.raises(RuntimeError):
        token.access().__enter__()
    with pytest.raises(RuntimeError), scope:
        raise AssertionError("entered")
    assert not c.is_owned()
    again = c.claim()  # the old token is foreign to the new ownership
    with pytest.raises(RuntimeError):
        token.relinquish()
    with pytest.raises(RuntimeError):
        with token.access():
            raise AssertionError("entered")
    assert c.is_owned()
    again.relinquish()


@each_kind()
def test_a_token_of_a_released_carrier(cell):
    """The owner released it: the token's end is quiet."""
    c = cell.make(3)
    token = c.claim()
    with token.access():
        c.release()
    del token
    gc.collect()
    assert c.is_released() and not c.is_owned()


@each_kind()
def test_tokens_are_exclusive(cell):
    """A token cannot be made, copied or entered for another carrier."""
    a, b = cell.make(2), cell.make(2)
    token, other = a.claim(), b.claim()
    with token.access():
        a[0] = cell.good
        with pytest.raises(RuntimeError):
            b[0] = cell.good
    for copier in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copier(token)
    with pytest.raises(TypeError):
        cs.Ownership()
    with pytest.raises(TypeError):
        cs.Ownership(a)
    assert a.is_owned() and b.is_owned()
    other.relinquish()


@each_kind()
def test_relinquishing_inside_the_scope(cell):
    """Relinquishing while a scope is open is refused or ends it: never leaves a half-owned carrier."""
    c = cell.make(3)
    token = c.claim()
    try:
        with token.access():
            token.relinquish()
    except RuntimeError:
        pass
    if c.is_owned():
        token.relinquish()
    assert not c.is_owned() and c.is_mutable()
    c[0] = cell.good


@each(is_evictable)
def test_an_owned_hierarchy(cell):
    """Decision H: an owned hierarchy refuses direct evict, promote, release; the owner may."""
    h = cell.make(3)
    token = h.claim()
    before = state(h)
    for call in (h.evict, h.promote, h.release):
        with pytest.raises(RuntimeError):
            call()
    assert state(h) == before
    with token.access():
        h.evict()
    with pytest.raises(RuntimeError):
        h.promote()
    assert h.is_evicted()
    with token.access():
        h.promote()
        h[0] = cell.good
        h.release()
    assert h.is_released()


@each_kind()
def test_an_immutable_carrier_may_be_owned(cell):
    """Inside, is_mutable() is the intrinsic answer: False; release works."""
    c = cell.make(3, mutable=False)
    token = c.claim()
    with pytest.raises(RuntimeError):
        c.release()
    with token.access():
        assert not c.is_mutable()
        c.release()
    assert c.is_released()


@each_kind()
def test_many_threads_one_owner(cell):
    """However many threads claim, one gets it; the others get RuntimeError."""
    c = cell.make(3)
    won, lost, barrier = [], [], threading.Barrier(6)

    def work():
        barrier.wait()
        try:
            won.append(c.claim())
        except RuntimeError:
            lost.append(1)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert (len(won), len(lost)) == (1, 5) and c.is_owned()
    won.pop().relinquish()
    assert values(c) == cell.samples(3)
