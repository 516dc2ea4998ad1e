# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Storage support is exact, structural, and allocation-free."""

import carrier_storage as cs
import pytest

from customs import HookedCarrier, LeastCarrier
from helpers import category, compound, extension, state
from kinds import each, is_evictable, make_cpu, make_file, make_generic, plain

BUILT_IN = [d for d in cs.DType.registered() if not d.name.startswith("Test.")]
NOT_DTYPES = [None, "Float32", 1, float, object(), cs.DType, type(cs.DType.Float32)]


def supported(carrier):
    return [d for d in BUILT_IN if carrier.supports_storage_dtype(d)]


def in_table_order(dtypes):
    return [d for d in BUILT_IN if d in dtypes]


@each()
def test_accepted_sets(cell):
    """The table, row by row: exactly these, whatever the carrier holds now; decision B: the table is literal."""
    assert supported(cell.make()) == in_table_order(cell.kind.support)


@each(plain)
def test_query_support_independently_of_current_storage(cell):
    """Scenario: Query support independently of current storage; the answer is a bool and changes nothing."""
    c = cell.make(3)
    before = state(c)
    answers = [c.supports_storage_dtype(d) for d in cell.kind.support]
    assert answers == [True] * len(answers) and {type(a) for a in answers} == {bool}
    assert state(c) == before


@each()
def test_the_answer_never_depends_on_state(cell):
    """Unchanged by dtype, size, intrinsic mutability, ownership, residency, or release state."""
    want = in_table_order(cell.kind.support)
    assert supported(cell.make(0)) == want
    assert supported(cell.make(2, mutable=False)) == want
    assert supported(cell.released()) == want
    owned = cell.make()
    token = owned.claim()
    assert supported(owned) == want
    token.relinquish()
    if cell.kind.evictable:
        evicted = cell.evicted()
        assert supported(evicted) == want
        evicted.release()
        assert supported(evicted) == want
    if not cell.kind.custom:
        assert supported(cell.make().allocate_like(1, dtype=cell.kind.dtypes[-1])) == want


@each()
def test_query_a_valid_unsupported_descriptor(cell):
    """Scenario: Query a valid unsupported descriptor."""
    c = cell.make()
    sub = extension(lambda name: cs.SimpleDType(name, bits=32, supertype=cs.DType.Floating))
    for dtype in (compound(), category(), sub, cs.DType.Integer, cs.DType.Float64, cs.DType.E4M3):
        assert c.supports_storage_dtype(dtype) is False


@each()
def test_a_query_takes_a_dtype(cell):
    """dtype shall be a DType; otherwise TypeError. After release too."""
    for c in (cell.make(), cell.released()):
        for other in NOT_DTYPES:
            with pytest.raises(TypeError):
                c.supports_storage_dtype(other)


@pytest.mark.parametrize("dtype", [cs.DType.Float32, cs.DType.Bool, cs.DType.Any, cs.DType.E5M2])
def test_a_custom_carrier_supports_what_it_holds(dtype):
    """An ordinary custom carrier that does not widen its support reports only the dtype it currently holds."""
    c = LeastCarrier([], dtype)
    assert supported(c) == [dtype]
    assert not c.supports_storage_dtype(compound())


def test_a_custom_carrier_may_widen_its_support():
    """The hook _supports_storage_dtype answers, and only for a DType."""
    c = HookedCarrier([], cs.DType.Float32)
    assert supported(c) == in_table_order([cs.DType.Float32, cs.DType.Int32, cs.DType.Bool])
    with pytest.raises(TypeError):
        c.supports_storage_dtype("Float32")


@pytest.mark.parametrize(
    ("primary", "secondary", "expected"),
    [
        (make_cpu, make_file, [cs.DType.Float32, cs.DType.Int32]),
        (make_generic, make_file, [cs.DType.Floating, cs.DType.Float32, cs.DType.Int32]),
        (
            make_generic,
            make_generic,
            [cs.DType.Any, cs.DType.Floating, cs.DType.Float32, cs.DType.Int32, cs.DType.Bool],
        ),
        (make_generic, make_cpu, [cs.DType.Float32, cs.DType.Int32, cs.DType.Bool]),
        (lambda v, d: LeastCarrier(v, d), make_cpu, [cs.DType.Float32]),
    ],
)
def test_a_hierarchy_supports_what_both_tiers_do(primary, secondary, expected):
    """Evictable: the identity-based intersection reported by its primary and secondary tiers."""
    h = cs.Evictable(primary([1.0], cs.DType.Float32), secondary([1.0], cs.DType.Float32))
    assert supported(h) == in_table_order(expected)


@each(is_evictable)
def test_the_intersection_is_asked_of_the_tiers(cell):
    """Evictable: the tiers answer, evicted and released as well."""
    h = cell.make()
    both = in_table_order([d for d in supported(h.primary) if d in supported(h.secondary)])
    assert supported(h) == both
    h.evict()
    assert supported(h) == both
