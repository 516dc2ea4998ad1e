# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions H: hierarchies, their construction and their moves."""

import array
import ctypes
import struct

import carrier_storage as cs
import pytest

from customs import LeastCarrier, WritableCarrier
from helpers import line, state, tensor, values
from kinds import BOOL, F32, I32, each, each_kind, is_evictable, make_cpu, make_file, make_generic

hierarchies = each(is_evictable)


def pair(dtype=F32):
    return cs.CPU(2, dtype=dtype), cs.CPU(1, dtype=dtype)


def test_construction_arguments():
    """Non-Carrier TypeError; by keyword too."""
    a, b = pair()
    for args in ((a, None), (None, b), (1, 2), ([1.0], b), (a, "b"), (a,), (), (a, b, a)):
        with pytest.raises(TypeError):
            cs.Evictable(*args)
    h = cs.Evictable(primary=a, secondary=b)
    assert h.primary is a and h.secondary is b


def refused(error, primary, secondary):
    """Construction fails and leaves both tiers as they were: unowned ones stay unowned."""
    before = state(primary), state(secondary)
    with pytest.raises(error):
        cs.Evictable(primary, secondary)
    assert (state(primary), state(secondary)) == before


def test_the_same_object_twice():
    """The same object twice: ValueError."""
    a, _ = pair()
    refused(ValueError, a, a)


@pytest.mark.parametrize("place", [0, 1])
def test_a_released_owned_or_evicted_tier(place):
    """Released, owned or evicted tier: RuntimeError."""
    for spoil in ("release", "claim", "evict"):
        tiers = list(pair())
        if spoil == "evict":
            tiers[place] = cs.Evictable(*pair())
        kept = getattr(tiers[place], spoil)()
        refused(RuntimeError, *tiers)
        assert kept is None or tiers[place].is_owned()


def test_a_tier_of_another_hierarchy():
    """A tier is owned: it cannot be a tier twice."""
    h = cs.Evictable(*pair())
    for args in ((h.primary, cs.CPU(1)), (cs.CPU(1), h.primary), (cs.CPU(1), h.secondary), (h, h.secondary)):
        refused(RuntimeError, *args)


def test_dtypes_not_identical():
    """dtypes not identical: TypeError."""
    refused(TypeError, cs.CPU(1, dtype=F32), cs.CPU(1, dtype=I32))
    refused(TypeError, cs.CPU(1, dtype=BOOL), cs.FileBacked(dtype=I32))


def test_secondary_not_publicly_mutable():
    """Secondary not publicly mutable: RuntimeError."""
    refused(RuntimeError, cs.CPU(1), cs.CPU(1, mutable=False))
    refused(RuntimeError, cs.CPU(1), LeastCarrier([0.0]))
    assert not cs.Evictable(cs.CPU(1, mutable=False), cs.CPU(1)).is_mutable()


def test_an_empty_primary():
    """Primary of size 0: ValueError; an empty secondary is fine."""
    refused(ValueError, cs.CPU(0), cs.CPU(1))
    refused(ValueError, cs.FileBacked(dtype=F32), cs.CPU(1))
    cs.Evictable(cs.CPU(1), cs.CPU(0))


def test_a_secondary_kind_that_cannot_hold_the_dtype():
    """Secondary kind that cannot hold the dtype: ValueError."""

    class Narrow(WritableCarrier):
        def _supports_storage_dtype(self, dtype, /):
            return False

    refused(ValueError, cs.CPU(1), Narrow([0.0]))


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        (("same", "released"), ValueError),
        (("released", "dtype"), RuntimeError),
        (("dtype", "immutable"), TypeError),
        (("immutable", "empty"), RuntimeError),
    ],
)
def test_the_order_of_the_checks(faults, error):
    """In the order in which they are written down."""
    primary = cs.CPU(0 if "empty" in faults else 1)
    secondary = cs.CPU(1, dtype=I32 if "dtype" in faults else F32, mutable="immutable" not in faults)
    if "same" in faults:
        secondary = primary
    if "released" in faults:
        primary.release()
    with pytest.raises(error):
        cs.Evictable(primary, secondary)


@hierarchies
def test_promoted_after_construction(cell):
    """Promoted after construction; primary and secondary are the exact objects; both are owned."""
    h = cell.make(3)
    assert h.is_evicted() is False and type(h.is_evicted()) is bool
    assert h.primary.is_owned() and h.secondary.is_owned() and not h.is_owned()
    assert (h.size(), h.dtype(), h.version) == (3, cell.dtype, 0)
    assert values(h) == values(h.primary) == cell.samples(3)
    for name in ("primary", "secondary"):
        with pytest.raises(AttributeError):
            setattr(h, name, cs.CPU(1))


@hierarchies
def test_evict_and_promote(cell):
    """evict() copies the whole extent down, then releases the primary; promote() is the mirror image. Both None."""
    h = cell.make(5)
    upper = h.primary
    assert h.evict() is None
    assert h.is_evicted() and upper.is_released() and h.primary is upper
    lower = h.secondary
    assert lower.is_owned() and not lower.is_released() and not lower.is_mutable()
    assert values(lower)[:5] == cell.samples(5)
    assert (h.size(), h.dtype(), h.is_mutable()) == (5, cell.dtype, True)
    assert h.promote() is None
    assert not h.is_evicted() and lower.is_released()
    assert not upper.is_owned(), "a replaced tier is relinquished"
    assert h.primary is not upper and h.primary.is_owned() and not h.primary.is_released()
    assert type(h.primary) is type(upper) and type(h.secondary) is type(lower)
    assert values(h) == values(h.primary) == cell.samples(5)
    for i in range(5):
        h[i] = cell.good
    assert values(h) == [cell.good] * 5


@hierarchies
def test_moves_are_no_ops_when_already_there(cell):
    """Both are no-ops when already there."""
    h = cell.make(3)
    before = state(h)
    h.promote()
    assert state(h) == before
    h.evict()
    before = state(h)
    h.evict()
    assert state(h) == before


@hierarchies
def test_many_rounds(cell):
    """Values survive any number of transitions, with writes between."""
    h = cell.make(7)
    model = cell.samples(7)
    for k in range(7):
        h.evict()
        h.promote()
        h[k] = model[k] = cell.good
        assert repr(values(h)) == repr(model)
    assert h.version == 7


@hierarchies
def test_what_answers_while_evicted(cell):
    """While evicted, reads, writes, scatter, dispatch are RuntimeErrors that name promote()."""
    h = cell.evicted(3)
    t = tensor(h, 3)
    before = state(h)
    calls = [
        lambda: h[0],
        lambda: h.get_value(0),
        lambda: h.__setitem__(0, cell.good),
        lambda: h.set_value(0, cell.good),
        lambda: t[0],
        lambda: t.__setitem__(0, cell.good),
        lambda: list(h),
        lambda: h.dispatch_op("add"),
    ]
    if cell.kind.scatters:
        calls.append(lambda: h.scatter(tensor(cell.make(1)), t, line(1)))
    for call in calls:
        with pytest.raises(RuntimeError, match="promote"):
            call()
    assert state(h) == before
    assert values(h.new_like(cell.samples(1))) == cell.samples(1)
    assert h.allocate_like(2).size() == 2


@pytest.mark.parametrize("make", [make_cpu, make_generic, make_file])
def test_a_large_enough_secondary_is_reused(make):
    """Reused when it is live and large enough, else provisioned: a fresh mutable one of the same kind."""
    for size in (3, 7):
        lower = make([9.0] * size, F32)
        h = cs.Evictable(make_cpu([1.0, 2.0, 3.0], F32), lower)
        h.evict()
        assert h.secondary is lower and values(lower) == [1.0, 2.0, 3.0] + [9.0] * (size - 3)
        h.promote()
        assert values(h) == [1.0, 2.0, 3.0] and h.size() == 3 and lower.is_released()
    small = make([9.0], F32)
    h = cs.Evictable(make_cpu([1.0, 2.0, 3.0], F32), small)
    h.evict()
    assert h.secondary is not small and type(h.secondary) is type(small)
    assert h.secondary.size() == 3 and small.is_released() and not small.is_owned()
    h.promote()
    assert values(h) == [1.0, 2.0, 3.0]


@hierarchies
def test_public_mutability_is_the_primarys_at_construction(cell):
    """Public mutability is the primary's at construction, for good, evicted or not."""
    frozen = cell.make(3, mutable=False)
    for act in (lambda: None, frozen.evict, frozen.promote, frozen.evict, frozen.release):
        act()
        assert frozen.is_mutable() is False
    open_ = cell.make(3)
    for act in (lambda: None, open_.evict, open_.promote, open_.evict):
        act()
        assert open_.is_mutable() is True
    token = open_.claim()
    assert open_.is_mutable() is False
    token.relinquish()
    assert open_.is_mutable() is True


@hierarchies
def test_a_frozen_hierarchy_moves(cell):
    """An immutable hierarchy moves all the same: transitions are no value mutations."""
    h = cell.make(3, mutable=False)
    for _ in range(2):
        h.evict()
        h.promote()
    assert values(h) == cell.samples(3) and h.version == 0
    with pytest.raises(RuntimeError):
        h[0] = cell.good


@hierarchies
def test_reads_of_the_tiers(cell):
    """A retained alias of a tier sees the values, may not write, and is released when replaced."""
    h = cell.make(3)
    alias = h.primary
    h[0] = cell.good
    assert alias[0] == cell.good
    with pytest.raises(RuntimeError):
        alias[0] = cell.good
    h.evict()
    with pytest.raises(RuntimeError):
        alias[0]


@hierarchies
def test_release_from_either_residency(cell):
    """release() releases both tiers."""
    for h in (cell.make(3), cell.evicted(3)):
        tiers = h.primary, h.secondary
        h.release()
        assert [t.is_released() for t in tiers] == [True, True]
        assert h.primary is tiers[0] and h.secondary is tiers[1]


@each_kind(is_evictable)
def test_empty_hierarchies(cell):
    """allocate_like(0) and new_like([]) give an empty promoted hierarchy, which moves as well."""
    h = cell.make(3)
    for made in (h.allocate_like(0), h.new_like([])):
        assert (made.size(), made.is_evicted()) == (0, False)
        made.evict()
        assert made.is_evicted()
        made.promote()
        assert (made.size(), made.is_evicted(), list(made)) == (0, False, [])
        assert made.allocate_like(2).size() == 2


@pytest.mark.parametrize("deep", [1, 2, 3, 4])
@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_nesting(deep, side):
    """Either tier may be an Evictable, however deep."""
    h = cs.Evictable(make_cpu([1, 2, 3], I32), make_file([], I32))
    for _ in range(deep):
        h = (
            cs.Evictable(h, make_cpu([0], I32))
            if side == "primary"
            else cs.Evictable(make_cpu([1, 2, 3], I32), h)
        )
    for _ in range(2):
        h.evict()
        h.promote()
        h[1] = h[1] + 1
    assert values(h) == [1, 4, 3] and h.version == 2
    h.release()
    assert h.is_released()


def test_a_nested_tier_refuses_its_own_moves():
    """An owned hierarchy refuses direct evict, promote, release: a tier as well."""
    inner = cs.Evictable(*pair())
    outer = cs.Evictable(inner, cs.CPU(1))
    for call in (inner.evict, inner.promote, inner.release, inner.claim):
        with pytest.raises(RuntimeError):
            call()
    outer.evict()
    outer.promote()
    assert not inner.is_owned() or outer.primary is inner


PATTERNS = [
    0x7FC00000,
    0xFFC00001,
    0x7F800001,
    0xFF923456,
    0x7FFFFFFF,
    0x80000000,
    0x00000001,
    0x807FFFFF,
    0x7F800000,
]


@each_kind(lambda kind: kind.evictable and not kind.custom and kind.tiers[0] == "CPU")
def test_bit_patterns_survive(cell):
    """Bit patterns survive every transition, NaN payloads included."""
    raw = struct.pack(f"{len(PATTERNS)}I", *PATTERNS)
    memory = array.array("f")
    memory.frombytes(raw)
    c = cs.CPU(len(PATTERNS), memory.buffer_info()[0])
    lower = cell.make(1).secondary.allocate_like(0)
    h = cs.Evictable(c, lower)
    for _ in range(3):
        h.evict()
        if hasattr(h.secondary, "path"):
            assert h.secondary.path.read_bytes() == raw
        h.promote()
        assert ctypes.string_at(h.primary.pointer(), len(raw)) == raw
    assert memory.tobytes() == raw


@each_kind(is_evictable)
def test_a_large_extent(cell):
    """The whole extent is copied, across any chunk."""
    n = 3000 if cell.kind.custom else 1_000_003
    h = cell.make(1).new_like(range(n), dtype=I32)
    h.evict()
    h.promote()
    for i in (0, 1, 1023, n // 2, n - 2, n - 1):
        assert h[i] == i
    assert h.size() == n


def test_tiers_written_in_python_without_factories():
    """A tier that cannot be provisioned: NotImplementedError that names the hook, everything as before."""
    h = cs.Evictable(cs.CPU(2), WritableCarrier([]))
    before = state(h)
    with pytest.raises(NotImplementedError, match="_allocate_like"):
        h.evict()
    assert state(h) == before
    roomy = cs.Evictable(cs.CPU(2), WritableCarrier([9.0, 9.0, 9.0]))
    roomy.evict()
    assert roomy.secondary.slots[:2] == [0.0, 0.0]
    roomy.promote()
    assert values(roomy) == [0.0, 0.0]
    stuck = cs.Evictable(WritableCarrier([1.0, 2.0]), cs.CPU(2))
    stuck.evict()
    before = state(stuck)
    with pytest.raises(NotImplementedError, match="_allocate_like"):
        stuck.promote()
    assert state(stuck) == before and stuck.is_evicted()
