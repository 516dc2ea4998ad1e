# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, writing: `with c.edit() as a:` yields a writable array and tells the version of it."""

import gc
import threading
import weakref

import carrier_storage as cs
import pytest
from handed import NAMES, copies, shares

from customs import HookedCarrier, LeastCarrier
from helpers import state, values
from kinds import BOOL, F32, each, is_evictable, plain

np = pytest.importorskip("numpy", reason="NumPy is not installed here")


def others(cell, count):
    """As many values as samples, all different from them."""
    return [not v for v in cell.samples(count)] if cell.dtype is BOOL else [cell.good] * count


@each()
def test_an_edit(cell):
    """A writable array; the version advances at entry and at exit."""
    c = cell.make(5)
    with c.edit() as a:
        assert c.version == 1
        assert (a.shape, a.dtype.name) == ((5,), NAMES[cell.dtype]) and a.flags.writeable
        assert a.tolist() == cell.samples(5)
        a[1:4] = others(cell, 5)[1:4]
    assert c.version == 2
    assert values(c) == [cell.samples(5)[0], *others(cell, 5)[1:4], cell.samples(5)[4]]
    with c.edit():
        pass
    assert c.version == 4 and values(c)[0] == cell.samples(5)[0]


@each(shares)
def test_in_place(cell):
    """The carrier's own memory where it has one: a write is there at once, and cannot be dropped."""
    c = cell.make(3)
    view = memoryview(c)
    with pytest.raises(KeyError), c.edit() as a:
        a[0] = others(cell, 3)[0]
        assert c[0] == view[0] == others(cell, 3)[0]
        raise KeyError("mine")
    assert values(c) == [others(cell, 3)[0], *cell.samples(3)[1:]] and c.version == 2


@each(copies)
def test_staged(cell):
    """A copy elsewhere: written back at a normal end, dropped at an exception; two steps either way."""
    c = cell.make(3)
    with c.edit() as a:
        a[:] = others(cell, 3)
        assert values(c) == cell.samples(3)
    assert values(c) == others(cell, 3) and c.version == 2
    with pytest.raises(KeyError), c.edit() as a:
        a[:] = cell.samples(3)
        raise KeyError("mine")
    assert values(c) == others(cell, 3) and c.version == 4


@each()
def test_no_slots(cell):
    """Nothing to edit is an edit too."""
    c = cell.make([])
    with c.edit() as a:
        assert a.shape == (0,)
    assert c.version == 2


def lifecycle_calls(c):
    yield c.release
    yield c.claim
    yield c.edit().__enter__
    if isinstance(c, cs.Evictable):
        yield c.evict


@each()
def test_what_waits_for_the_end(cell):
    """Release, evict, claim and a second edit are RuntimeErrors inside; afterwards they work."""
    c = cell.make(3)
    with c.edit() as a:
        before = state(c)
        for call in lifecycle_calls(c):
            with pytest.raises(RuntimeError, match="edited"):
                call()
        assert state(c) == before
        a[0] = others(cell, 3)[0]
    with c.edit():
        pass
    token = c.claim()
    token.relinquish()
    if cell.kind.evictable:
        c.evict()
        c.promote()
    c.release()


@each(is_evictable)
def test_promote_waits_too(cell):
    """RuntimeError, although a hierarchy that is edited is promoted already."""
    h = cell.make(3)
    with h.edit(), pytest.raises(RuntimeError, match="edited"):
        h.promote()


@each(plain)
def test_composing_waits_for_the_end(cell):
    """A hierarchy owns its tiers, so none of them may be under an edit."""
    c = cell.make(3)
    with c.edit(), pytest.raises(RuntimeError, match="edited"):
        cs.Evictable(c, cs.CPU(3, dtype=cell.dtype))
    assert not c.is_owned()


@each()
def test_it_needs_public_mutability(cell):
    """Immutable, owned by others, released: a RuntimeError, and nothing changes."""
    frozen, owned, gone = cell.make(3, mutable=False), cell.make(3), cell.released()
    token = owned.claim()
    for c in (frozen, owned, gone):
        before = state(c)
        with pytest.raises(RuntimeError):
            c.edit().__enter__()
        assert state(c) == before
    with token.access() as inside, inside.edit() as a:
        a[0] = others(cell, 3)[0]
    token.relinquish()
    assert owned[0] == others(cell, 3)[0] and owned.version == 2


@each(is_evictable)
def test_evicted(cell):
    """The message names promote()."""
    h = cell.evicted()
    with pytest.raises(RuntimeError, match=r"promote\(\)"):
        h.edit().__enter__()
    h.promote()
    with h.edit() as a:
        a[0] = others(cell, 3)[0]
    h.evict()
    h.promote()
    assert values(h) == [others(cell, 3)[0], *cell.samples(3)[1:]]


def test_a_tier_is_edited_through_its_hierarchy():
    """Tiers are owned."""
    h = cs.Evictable(cs.CPU(2), cs.CPU(2))
    for tier in (h.primary, h.secondary):
        with pytest.raises(RuntimeError, match="owned"):
            tier.edit().__enter__()
    with h.edit() as a:
        a[:] = 7
    assert list(h.primary) == [7.0, 7.0] and h.primary.version == h.version == 2


def test_a_carrier_that_is_never_mutable():
    """Without a _set_value hook there is nothing to write back with."""
    with pytest.raises(RuntimeError):
        LeastCarrier([1.0]).edit().__enter__()


def test_a_dtype_without_bytes():
    """A TypeError before anything begins."""
    c = HookedCarrier([1.0], cs.DType.Float64)
    with pytest.raises(TypeError, match="Float64"):
        c.edit().__enter__()
    assert c.version == 0
    c.release()


@each()
def test_wrong_uses(cell):
    """An exit without an entry, a second entry, a second exit: RuntimeErrors that say what to do."""
    c = cell.make(3)
    scope = c.edit()
    with pytest.raises(RuntimeError, match="with"):
        scope.__exit__(None, None, None)
    assert c.version == 0
    with scope:
        with pytest.raises(RuntimeError, match="running"):
            scope.__enter__()
    for call in (scope.__enter__, lambda: scope.__exit__(None, None, None)):
        with pytest.raises(RuntimeError, match=r"edit\(\)"):
            call()
    assert c.version == 2
    with pytest.raises(TypeError):
        type(scope)()


def test_an_entry_that_failed_can_be_tried_again():
    """Nothing began, so the same scope may begin later."""
    h = cs.Evictable(cs.CPU(2), cs.CPU(2))
    scope = h.edit()
    h.evict()
    with pytest.raises(RuntimeError):
        scope.__enter__()
    h.promote()
    with scope as a:
        a[:] = 3
    assert list(h) == [3.0, 3.0]


@each()
def test_an_edit_that_is_dropped(cell):
    """It ends as one that raised: nothing is written back, and the carrier is free."""
    c = cell.make(3)
    scope = c.edit()
    a = scope.__enter__()
    if copies(cell.kind):
        a[:] = others(cell, 3)
    del scope
    assert values(c) == cell.samples(3) and c.version == 2
    a[:] = a
    c.release()


@each()
def test_an_edit_in_a_cycle(cell):
    """The garbage collector finds a cycle through a running edit, and ends it."""

    class Node:
        pass

    c = cell.make(3)
    node, node.scope = Node(), c.edit()
    node.array = node.scope.__enter__()
    if cell.kind.name == "custom":
        c.node = node  # through the carrier itself
        c.free = weakref.ref(c)
        gone = c.free
        del c, node
        gc.collect()
        assert gone() is None
    else:
        node.node = node
        del node
        gc.collect()
        assert c.version == 2
        c.release()


@each()
def test_element_writes_inside(cell):
    """They go on, each with its own step; where the array is a copy, its end overwrites them."""
    c = cell.make(3)
    with c.edit() as a:
        c[0] = others(cell, 3)[0]
        assert c.version == 2
        assert bool(a[0] == c[0]) == shares(cell.kind)
    assert c.version == 3
    assert c[0] == (others(cell, 3)[0] if shares(cell.kind) else cell.samples(3)[0])


@each()
def test_writing_after_the_end(cell):
    """The caller's error, never unsafe."""
    c = cell.make(100)
    with c.edit() as a:
        pass
    if not copies(cell.kind):
        a[0] = c[0]
    c.release()
    del c
    gc.collect()
    more = [cell.make(100) for _ in range(10)]
    a[:] = 1
    assert all(values(m) == cell.samples(100) for m in more) and (a == 1).all()


def test_a_write_back_that_fails():
    """The hook's error comes out of the block; old values are written back; the edit has ended."""

    class Picky(HookedCarrier):
        def _set_value(self, index, value, /):
            if value == 13.0:
                raise LookupError("mine")
            super()._set_value(index, value)

    c = Picky([1.0, 2.0, 3.0], F32)
    with pytest.raises(LookupError, match="mine"):
        with c.edit() as a:
            a[:] = [7, 13, 8]
    assert c.slots == [1.0, 2.0, 3.0] and c.version == 2
    with c.edit() as a:
        a[:] = [7, 8, 9]
    assert c.slots == [7.0, 8.0, 9.0]


def test_a_carrier_that_turns_immutable_inside():
    """The write-back asks once more: RuntimeError, and the edit has ended."""
    c = HookedCarrier([1.0, 2.0], F32)
    with pytest.raises(RuntimeError, match="mutable"):
        with c.edit() as a:
            a[:] = 5
            c.writable = False
    c.writable = True
    assert c.slots == [1.0, 2.0] and c.version == 2
    c.release()


def test_hooks_that_interfere():
    """A hook of the write-back that ends the edit, or uses the carrier, meets a RuntimeError."""
    seen = []

    class Busy(HookedCarrier):
        def _set_value(self, index, value, /):
            super()._set_value(index, value)
            for call in (
                lambda: scope.__exit__(None, None, None),
                self.release,
                self.claim,
                self.edit().__enter__,
            ):
                try:
                    call()
                except RuntimeError as error:
                    seen.append(str(error))

    c = Busy([1.0, 2.0], F32)
    scope = c.edit()
    with scope as a:
        a[:] = 5
    assert c.slots == [5.0, 5.0] and c.version == 2 and len(seen) == 8
    c.release()


def test_hooks_that_interfere_with_the_beginning():
    """A hook that begins another edit while this one reads: one of them, and no half state."""

    class Busy(HookedCarrier):
        inner = None

        def _get_value(self, index, /):
            if self.inner is None:
                self.inner = self.edit()
                self.inner.__enter__()
            return super()._get_value(index)

    c = Busy([1.0, 2.0], F32)
    with pytest.raises(RuntimeError, match="edit"):
        c.edit().__enter__()
    c.inner.__exit__(None, None, None)
    assert c.slots == [1.0, 2.0] and c.version == 2
    with c.edit() as a:
        a[:] = 3
    assert c.slots == [3.0, 3.0]


@each()
def test_from_many_threads(cell):
    """One edit at a time, from whatever thread; one that ends elsewhere ends."""
    c = cell.make(2000)
    wins, refusals, wrong = [], [], []
    start = threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(10):
            try:
                with c.edit() as a:
                    a[:] = a[0]
                    wins.append(1)
            except RuntimeError:
                refusals.append(1)
            except BaseException as error:
                wrong.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong and wins and len(wins) + len(refusals) == 40
    assert c.version == 2 * len(wins)
    scope = c.edit()
    scope.__enter__()
    end = threading.Thread(target=scope.__exit__, args=(None, None, None))
    end.start()
    end.join()
    c.release()
