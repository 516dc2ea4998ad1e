# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: allocate_like creates fresh size-based storage."""

import pytest

from customs import IndexLike
from helpers import state, values
from kinds import each, each_kind, is_evictable


@each()
def test_allocate_initialized_storage(cell):
    """Scenario: Allocate initialized storage: independent, of the receiver's dtype, zero."""
    c = cell.make(2)
    before = state(c)
    for n in (0, 1, 3, 1000):
        made = c.allocate_like(n)
        assert type(made) is type(c) and made is not c
        assert (made.size(), made.dtype(), made.version) == (n, cell.dtype, 0)
        assert repr(values(made)) == repr([cell.zero] * n)
        assert made.is_mutable() and not made.is_owned()
    assert state(c) == before
    made = c.allocate_like(2)
    made[0] = cell.good
    c[1] = cell.good
    assert values(made) == [cell.good, cell.zero]


@each()
def test_override_dtype(cell):
    """dtype None preserves the receiver's; a supported one is what the result reports."""
    c = cell.make(2)
    assert c.allocate_like(2, dtype=None).dtype() is cell.dtype
    for dtype in cell.kind.dtypes:
        made = c.allocate_like(2, dtype=dtype)
        assert made.dtype() is dtype
        zero = {"Float32": 0.0, "Int32": 0, "Bool": False}[dtype.name]
        assert repr(values(made)) == repr([zero] * 2)


@each()
def test_mutable(cell):
    """mutable states the fresh carrier's intrinsic mutability."""
    for c in (cell.make(2), cell.make(2, mutable=False)):
        assert c.allocate_like(2).is_mutable()
        frozen = c.allocate_like(2, mutable=False)
        assert not frozen.is_mutable() and values(frozen) == [cell.zero] * 2


@each()
def test_request_an_empty_allocation(cell):
    """Scenario: Request an empty CPU allocation; Generic and FileBacked retain their initialized behavior."""
    c = cell.make(2)
    made = c.allocate_like(5, empty=True)
    assert made.size() == 5
    if cell.kind.name in {"generic", "file", "generic_file", "file_cpu"}:
        assert repr(values(made)) == repr([cell.zero] * 5)
    for i, v in enumerate(cell.samples(5)):
        made[i] = v
    assert values(made) == cell.samples(5)


@each()
def test_released_receivers_still_allocate(cell):
    """Decision E: after release allocate_like still answers."""
    made = cell.released().allocate_like(2)
    assert values(made) == [cell.zero] * 2
    made[0] = cell.good


@each_kind()
def test_size_supports_the_index_protocol(cell):
    """Not so: TypeError; negative: ValueError; decision D: anything with __index__, bool as well."""
    c = cell.make(2)
    before = state(c)
    for other in (1.0, "1", None, [1], 1j):
        with pytest.raises(TypeError):
            c.allocate_like(other)
    for negative in (-1, -(2**63), -(2**70), IndexLike(-3)):
        with pytest.raises(ValueError):
            c.allocate_like(negative)
    assert c.allocate_like(IndexLike(3)).size() == 3
    assert c.allocate_like(True).size() == 1
    assert c.allocate_like(size=2).size() == 2
    assert state(c) == before


@each_kind()
def test_numpy_sizes(cell):
    """Decision D: NumPy's integers included."""
    np = pytest.importorskip("numpy")
    c = cell.make(1)
    assert c.allocate_like(np.int32(3)).size() == 3
    with pytest.raises(ValueError):
        c.allocate_like(np.int64(-1))
    with pytest.raises(TypeError):
        c.allocate_like(np.float64(1))


@each_kind(lambda kind: not kind.custom)
def test_too_large_an_allocation(cell):
    """Decision D: a MemoryError (on a file OSError or MemoryError); nothing aborts and nothing is left."""
    c = cell.make(1)
    before = state(c)
    for size in (2**60, 2**62, 2**63 - 1, 2**63, 2**70):
        with pytest.raises((MemoryError, OSError)):
            c.allocate_like(size)
    assert state(c) == before


@each_kind()
def test_arguments(cell):
    """Decision D: mutable and empty are exact bools; the options are keyword-only."""
    c = cell.make(1)
    for name in ("mutable", "empty"):
        for other in (0, 1, None, "yes"):
            with pytest.raises(TypeError):
                c.allocate_like(1, **{name: other})
    for call in (
        lambda: c.allocate_like(),
        lambda: c.allocate_like(1, True),
        lambda: c.allocate_like(1, colour=1),
    ):
        with pytest.raises(TypeError):
            call()


@each(is_evictable)
def test_a_hierarchy_allocates_a_promoted_hierarchy(cell):
    """Promoted, its primary of the requested size, its secondary fresh, mutable and of size zero."""
    for receiver in (cell.make(3), cell.evicted(3), cell.released(3)):
        for n in (0, 4):
            made = receiver.allocate_like(n)
            assert not made.is_evicted() and made.size() == made.primary.size() == n
            assert made.secondary.size() == 0
            assert (type(made.primary).__name__, type(made.secondary).__name__) == cell.kind.tiers
            assert made.primary.is_owned() and made.secondary.is_owned()
            made.evict()
            assert made.secondary.size() == n
            made.promote()
            assert values(made) == [cell.zero] * n
