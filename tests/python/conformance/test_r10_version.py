# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Every successful public mutation advances the version."""

import pytest

from helpers import line, tensor, values
from kinds import each, is_evictable, scatters


@each()
def test_a_fresh_carrier_has_a_version(cell):
    """version exposes a non-negative integer; construction is no mutation; nobody may set it."""
    c = cell.make(3)
    assert type(c.version) is int and c.version >= 0
    with pytest.raises(AttributeError):
        c.version = 5
    for made in (c.new_like(cell.samples(3)), c.allocate_like(3)):
        assert made.version == 0
    assert c.version == 0


@each()
def test_version_an_indexed_write(cell):
    """Scenario: Version an indexed write: exactly one greater; set_value likewise; the same value as well."""
    c = cell.make(3)
    start = c.version
    c[0] = cell.good
    assert c.version == start + 1
    c.set_value(1, cell.good)
    assert c.version == start + 2
    c[0] = c[0]
    assert c.version == start + 3
    tensor(c)[2] = cell.good
    assert c.version == start + 4 == tensor(c).version
    assert c.increment_version() is None
    assert c.version == start + 5


@each(scatters)
def test_version_a_scatter(cell):
    """A completed scatter advances it (decision G: by one)."""
    c = cell.make(3)
    c.scatter(tensor(cell.make(2)), tensor(c), line(2))
    assert c.version == 1


@each()
def test_a_failed_mutation_leaves_values_and_version(cell):
    """A failed mutation shall leave both values and version unchanged."""
    c = cell.make(3)
    c[0] = cell.good
    held = values(c)
    for call in (
        lambda: c.__setitem__(3, cell.good),
        lambda: c.__setitem__("0", cell.good),
        lambda: c.set_value(0, object()),
        lambda: c.set_value(-1, cell.good),
        lambda: c.scatter(tensor(c), tensor(c), line(2)),
        lambda: c.scatter(tensor(c), tensor(c), line(3), 1),
        lambda: tensor(c).__setitem__(7, cell.good),
    ):
        with pytest.raises((TypeError, ValueError, IndexError, NotImplementedError)):
            call()
    assert (values(c), c.version) == (held, 1)


@each()
def test_reading_and_release_are_no_mutations(cell):
    """Allocation, construction, release and queries do not increment it; it answers after release."""
    c = cell.make(3)
    c[0] = cell.good
    list(c), c[1], c.size(), c.dtype(), repr(c), c.supports_storage_dtype(cell.dtype), c.is_mutable()
    tensor(c)[0]
    c.claim().relinquish()
    c.new_like(c), c.allocate_like(1)
    assert c.version == 1
    c.release()
    assert c.version == 1
    c.release()
    assert c.version == 1


@each(is_evictable)
def test_preserve_version_across_eviction_and_promotion(cell):
    """Scenario: Preserve version across eviction and promotion."""
    h = cell.make(3)
    h[0] = cell.good
    for _ in range(3):
        h.evict()
        assert h.version == 1
        h.evict()
        h.promote()
        assert h.version == 1
    assert values(h) == [cell.good, *cell.samples(3)[1:]]


@each(is_evictable)
def test_the_wrapper_is_the_version_authority(cell):
    """Mutation through the wrapper increments the wrapper version once; its Tensors see that one."""
    h = cell.make(3)
    t = tensor(h)
    for i in range(3):
        h[0] = cell.good
        assert h.version == t.version == i + 1
    h.evict()
    assert t.version == 3
    h.promote()
    h[1] = cell.good
    assert h.version == t.version == 4
    if cell.kind.scatters:
        h.scatter(tensor(cell.make(3)), t, line(3))
        assert h.version == t.version == 5


@each()
def test_the_version_is_monotonic(cell):
    """version is monotonic over any mixture of good and bad calls."""
    c = cell.make(3)
    seen = [c.version]
    for i in range(30):
        try:
            c[i % 5] = cell.good if i % 3 else object()
        except (IndexError, TypeError):
            pass
        seen.append(c.version)
    assert seen == sorted(seen) and {b - a for a, b in zip(seen, seen[1:], strict=False)} == {0, 1}


@each()
def test_increment_version_obeys_public_mutability(cell):
    """Decision E: increment_version() is public and obeys is_mutable()."""
    frozen = cell.make(2, mutable=False)
    gone = cell.released(2)
    for c in (frozen, gone):
        held = c.version
        with pytest.raises(RuntimeError):
            c.increment_version()
        assert c.version == held
