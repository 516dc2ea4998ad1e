# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Scatter maps logical source values into destination storage. The order of checks: test_g_scatter.py."""

import carrier_storage as cs
import pytest

from customs import IndexLike
from helpers import line, many_planes, state, tensor, values
from kinds import each, each_kind, is_evictable, scatters


@each(scatters)
def test_scatter_through_a_mapping(cell):
    """Scenario: Scatter through a mapping: slot = scatter_onto.offset + mapping_offset + mapping.index(i)."""
    c = cell.make([cell.zero] * 12)
    source = cell.make(6)
    layout = cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1))
    mapping = cs.Layout(cs.Shape(2, 3), cs.Stride(1, 3))
    start = c.version
    assert c.scatter(cs.Tensor(source, 0, layout), tensor(c, 4, offset=1), mapping, 2) is None
    want = [cell.zero] * 12
    for i in range(6):
        want[1 + 2 + mapping.index(i)] = cell.samples(6)[layout.index(i)]
    assert repr(values(c)) == repr(want)
    assert c.version > start


@each(scatters)
def test_mapping_offset_defaults_to_zero(cell):
    """mapping_offset is a non-negative integer defaulting to zero, by keyword too."""
    c = cell.make([cell.zero] * 4)
    source = tensor(cell.make([cell.good]))
    c.scatter(source, tensor(c), line(1))
    c.scatter(source, tensor(c), line(1), mapping_offset=1)
    c.scatter(to_scatter=source, scatter_onto=tensor(c), mapping=line(1), mapping_offset=IndexLike(2))
    assert values(c) == [cell.good] * 3 + [cell.zero]


@each(scatters)
def test_aliases_observe_the_writes(cell):
    """Aliases observe it: Tensors over the receiver see values and version."""
    c = cell.make([cell.zero] * 3)
    alias = tensor(c)
    c.scatter(tensor(cell.make([cell.good])), tensor(c), line(1), 1)
    assert (alias[1], alias.version) == (cell.good, c.version)


@each_kind(scatters)
def test_argument_types(cell):
    """Invalid argument types shall raise TypeError."""
    c = cell.make(3)
    t, m = tensor(c), line(3)
    before = state(c)
    for bad in (None, 3, [1], object(), c, cs.Shape(3)):
        for args in ((bad, t, m), (t, bad, m), (t, t, bad)):
            with pytest.raises(TypeError):
                c.scatter(*args)
    for bad in (1.0, "0", None, [0]):
        with pytest.raises(TypeError):
            c.scatter(t, t, m, bad)
    for args in ((), (t,), (t, t), (t, t, m, 0, 0)):
        with pytest.raises(TypeError):
            c.scatter(*args)
    assert state(c) == before


@each_kind(scatters)
def test_fail_scatter_atomically(cell):
    """Scenario: Fail Metal scatter atomically: foreign, mismatched, invalid offset, out of range, multi-subtensor."""
    c = cell.make(6)
    t, source = tensor(c), tensor(cell.make(3))
    foreign = tensor(cell.make(6))
    before = state(c)
    for expected, args in (
        (ValueError, (source, foreign, line(3))),
        (ValueError, (source, t, line(4))),
        (ValueError, (source, t, cs.Layout(cs.Shape(3, 1), cs.Stride(1, 1)))),
        (ValueError, (source, t, line(3), -1)),
        (ValueError, (source, t, line(3), -(2**70))),
        (IndexError, (source, t, line(3), 4)),
        (IndexError, (source, t, line(3, 3))),
        (IndexError, (source, tensor(c, 2, offset=4), line(3))),
        (NotImplementedError, (many_planes(), t, line(2))),
        (NotImplementedError, (source, many_planes(), line(3))),
    ):
        with pytest.raises(expected):
            c.scatter(*args)
        assert state(c) == before


@each_kind(scatters)
def test_a_huge_mapping_offset_is_out_of_range(cell):
    """Out-of-range destination shall fail before any write, whatever the magnitude."""
    c = cell.make(6)
    before = state(c)
    for offset in (2**31, 2**62, 2**63 - 1, 2**63, 2**70):
        with pytest.raises(IndexError):
            c.scatter(tensor(c, 2), tensor(c), line(2), offset)
    assert state(c) == before


@each_kind(scatters)
def test_public_mutability_applies(cell):
    """Public mutability shall apply: immutable, owned, released."""
    source = tensor(cell.make(2))
    frozen = cell.make(3, mutable=False)
    with pytest.raises(RuntimeError):
        frozen.scatter(source, tensor(frozen), line(2))
    owned = cell.make(3)
    t, token = tensor(owned), owned.claim()
    with pytest.raises(RuntimeError):
        owned.scatter(source, t, line(2))
    with token.access():
        owned.scatter(source, t, line(2))
    assert owned.version == 1


@each(lambda kind: not kind.scatters)
def test_files_do_not_scatter(cell):
    """FileBacked shall raise NotImplementedError. Decision G: whatever the arguments and its state."""
    c = cell.make(3)
    t = tensor(c)
    before = state(c)
    for args in (
        (t, t, line(3)),
        (1, 2, 3),
        (None, None, None, "x"),
        (t, t, line(9), -4),
        (many_planes(), t, line(2)),
    ):
        with pytest.raises(NotImplementedError):
            c.scatter(*args)
    assert state(c) == before
    frozen = cell.make(3, mutable=False)
    with pytest.raises(NotImplementedError):
        frozen.scatter(t, tensor(frozen), line(3))
    token = c.claim()
    with pytest.raises(NotImplementedError):
        c.scatter(t, t, line(3))
    token.relinquish()
    c.release()
    with pytest.raises(NotImplementedError):
        c.scatter(t, t, line(3))


@each(lambda kind: kind.scatters and kind.evictable)
def test_a_hierarchy_requires_promotion(cell):
    """Evictable shall require promotion, lower to its primary, and advance the wrapper version once."""
    h = cell.make(3)
    t, source = tensor(h), tensor(cell.make([cell.good]))
    h.evict()
    before = state(h)
    with pytest.raises(RuntimeError, match="promote"):
        h.scatter(source, t, line(1))
    assert state(h) == before
    h.promote()
    h.scatter(source, t, line(1), 1)
    assert (h[1], h.primary[1], h.version) == (cell.good, cell.good, 1)


@each(lambda kind: kind.scatters and is_evictable(kind))
def test_an_evicted_source(cell):
    """Decision G: an evicted source is a RuntimeError."""
    h = cell.make(2)
    t = tensor(h)
    h.evict()
    c = cell.make([cell.zero] * 2)
    before = state(c)
    with pytest.raises(RuntimeError, match="promote"):
        c.scatter(t, tensor(c), line(2))
    assert state(c) == before


def test_scatter_is_not_dispatch():
    """This carrier method is distinct from the computational operation under dispatch."""
    with pytest.raises(NotImplementedError, match="scatter"):
        cs.CPU(1).dispatch_op("scatter")
