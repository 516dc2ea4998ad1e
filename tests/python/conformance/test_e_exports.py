# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions E: memory handed out never dangles, and what an export answers when there is nothing to hand out."""

import gc

import carrier_storage as cs
import pytest

from helpers import values
from kinds import each, is_evictable, plain

in_memory = each(lambda kind: kind.name in {"cpu", "wrapped", "generic", "metal"})


@in_memory
def test_views_survive_release(cell):
    """release() succeeds at once and the block dies with its last view."""
    c = cell.make(5)
    view = memoryview(c)
    assert view.tolist() == cell.samples(5)
    c.release()
    assert c.is_released() and view.tolist() == cell.samples(5)
    del c
    gc.collect()
    others = [cell.make([cell.good] * 5) for _ in range(20)]
    assert view.tolist() == cell.samples(5) and len(others) == 20
    second = memoryview(view)
    del view
    assert second.tolist() == cell.samples(5)


@in_memory
def test_arrays_survive_release(cell):
    """NumPy views and DLPack tensors alike."""
    np = pytest.importorskip("numpy")
    for export in (np.asarray, lambda c: c.numpy()):
        c = cell.make(5)
        a = export(c)
        c.release()
        del c
        gc.collect()
        assert a.tolist() == cell.samples(5)


@each(lambda kind: kind.evictable and kind.tiers[0] == "CPU")
def test_views_survive_eviction(cell):
    """Evicting never invalidates a view either."""
    h = cell.make(5)
    view = memoryview(h)
    h.evict()
    assert view.tolist() == cell.samples(5)
    h.promote()
    h[0] = cell.good
    h.release()
    assert view.tolist() == cell.samples(5)


def refuses_exports(carrier):
    """Each way to export: what the decisions say when there is no live storage."""
    with pytest.raises(BufferError):
        memoryview(carrier)
    with pytest.raises(BufferError):
        carrier.__dlpack__()
    with pytest.raises(BufferError):
        carrier.__dlpack__(max_version=(1, 0), copy=True)
    np = pytest.importorskip("numpy")
    for export in (np.asarray, np.array, lambda c: c.numpy()):
        with pytest.raises(RuntimeError):
            export(carrier)


@each(plain)
def test_exports_of_a_released_carrier(cell):
    """BufferError from the buffer protocol and DLPack, a RuntimeError from NumPy, never an object array."""
    if cell.kind.name == "custom" or cell.kind.name == "file":
        np = pytest.importorskip("numpy")
        c = cell.released()
        for export in (np.asarray, np.array, lambda c: c.numpy()):
            with pytest.raises(RuntimeError):
                export(c)
        with pytest.raises(BufferError):
            c.__dlpack__()
        with pytest.raises(BufferError):
            memoryview(c)
    else:
        refuses_exports(cell.released())


@each(is_evictable)
def test_exports_of_a_hierarchy(cell):
    """While evicted as after release (decision H)."""
    h = cell.evicted(3)
    refuses_exports(h)
    h.promote()
    assert values(h) == cell.samples(3)
    h.release()
    refuses_exports(h)


def test_a_view_counts_the_block_not_the_carrier():
    """The block dies with its last view: a tier that was replaced is readable through it, and independent."""
    h = cs.Evictable(cs.CPU(2), cs.CPU(2))
    view = memoryview(h)
    h.evict()
    h.promote()
    h[0] = 5.0
    assert view.tolist() == [0.0, 0.0]
