# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions H: a transition that fails, at whatever step, leaves everything as it was and can be retried."""

import sys

import carrier_storage as cs
import pytest

from customs import Faulty, HookedCarrier, HookFailure
from helpers import values
from kinds import F32, make_cpu, make_file

DATA = [1.5, -2.5, 3.5]
MOST_CALLS = 200


@pytest.fixture(autouse=True)
def reported(monkeypatch):
    """What was raised where no call could pass it on: a tier that refuses when the others have gone."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(repr(unraisable.exc_value)))
    Faulty.disarm()
    Faulty.made = []
    yield seen
    Faulty.disarm()
    Faulty.made = []


def faulty(values, dtype=F32, mutable=True):
    return Faulty(values, dtype, mutable)


SHAPES = {
    "faulty over cpu": lambda: cs.Evictable(faulty(DATA), make_cpu([0.0], F32)),
    "faulty over roomy cpu": lambda: cs.Evictable(faulty(DATA), make_cpu([0.0] * 5, F32)),
    "faulty over file": lambda: cs.Evictable(faulty(DATA), make_file([], F32)),
    "cpu over faulty": lambda: cs.Evictable(make_cpu(DATA, F32), faulty([])),
    "cpu over roomy faulty": lambda: cs.Evictable(make_cpu(DATA, F32), faulty([9.0] * 5)),
    "file over faulty": lambda: cs.Evictable(make_file(DATA, F32), faulty([9.0])),
    "faulty over faulty": lambda: cs.Evictable(faulty(DATA), faulty([9.0])),
    "nested primary": lambda: cs.Evictable(
        cs.Evictable(faulty(DATA), make_cpu([0.0], F32)), make_cpu([0.0], F32)
    ),
    "nested primary over faulty": lambda: cs.Evictable(
        cs.Evictable(make_cpu(DATA, F32), faulty([0.0])), faulty([0.0])
    ),
    "nested secondary": lambda: cs.Evictable(
        make_cpu(DATA, F32), cs.Evictable(faulty([0.0] * 3), make_cpu([0.0], F32))
    ),
    "nested small secondary": lambda: cs.Evictable(
        make_cpu(DATA, F32), cs.Evictable(faulty([0.0]), faulty([0.0]))
    ),
}
shapes = pytest.mark.parametrize("build", SHAPES.values(), ids=SHAPES)


def tiers(carrier):
    """The leaves of a hierarchy, whatever their state."""
    if isinstance(carrier, cs.Evictable):
        return tiers(carrier.primary) + tiers(carrier.secondary)
    return [carrier]


def logical(h):
    """The values that the hierarchy stands for, read from where they are."""
    lower = h.secondary if h.is_evicted() else h.primary
    return logical(lower)[:3] if isinstance(lower, cs.Evictable) else values(lower)[:3]


def contents(carrier):
    """What each live tier holds, the idle one as well: an alias of it may be read."""
    return [
        list(t.slots) if isinstance(t, HookedCarrier) else values(t)
        for t in tiers(carrier)
        if not t.is_released()
    ]


def look(h):
    """Residency, tiers and what they hold, values, ownership and version."""
    top = (h.size(), h.version, h.is_mutable(), h.is_owned(), h.is_released(), h.is_evicted())
    below = [(id(t), t.size(), t.version, t.is_mutable(), t.is_owned(), t.is_released()) for t in tiers(h)]
    return top, logical(h), (id(h.primary), id(h.secondary)), below, contents(h)


def fail_every_call(h, move):
    """Fails the k-th hook call of the move for every k, until a k beyond the last: then it has moved."""
    failures = 0
    for k in range(1, MOST_CALLS):
        before = look(h)
        known = {id(t) for t in tiers(h)}
        Faulty.arm(k)
        try:
            move()
        except HookFailure:
            Faulty.disarm()
            failures += 1
            assert look(h) == before, f"call {k} failed"
            assert all(t.is_released() or id(t) in known for t in Faulty.made if not t.is_owned()), (
                f"temporary of call {k}"
            )
        else:
            Faulty.disarm()
            return failures
    raise AssertionError("the move never got through")


@shapes
def test_a_failing_evict_changes_nothing(build):
    """Any error leaves residency, tiers, values, ownership and version as they were, and can be retried."""
    h = build()
    h[0] = 7.5
    failures = fail_every_call(h, h.evict)
    assert failures > 0 or "secondary" in str(build)
    assert h.is_evicted() and logical(h) == [7.5, -2.5, 3.5] and h.version == 1
    h.promote()
    assert values(h) == [7.5, -2.5, 3.5]


@shapes
def test_a_failing_promote_changes_nothing(build):
    """The mirror image."""
    h = build()
    h[0] = 7.5
    h.evict()
    fail_every_call(h, h.promote)
    assert not h.is_evicted() and values(h) == [7.5, -2.5, 3.5] and h.version == 1
    h.evict()
    h.promote()
    assert values(h) == [7.5, -2.5, 3.5]


@shapes
def test_a_failing_release(build, reported):
    """A _release() that raises leaves its carrier live (decision K); the release can be retried."""
    h = build()
    for k in range(1, MOST_CALLS):
        Faulty.arm(k)
        try:
            h.release()
        except HookFailure:
            Faulty.disarm()
            assert not h.is_released() and logical(h) == DATA
        else:
            break
    Faulty.disarm()
    assert h.is_released() and all(t.is_released() for t in tiers(h)) and not reported
    h.release()


@shapes
def test_construction_that_fails_leaves_both_tiers_unowned(build):
    """Construction that fails leaves both tiers unowned, whichever hook raised."""
    for k in range(1, 40):
        upper, lower = faulty(DATA), faulty([9.0])
        Faulty.arm(k)
        try:
            cs.Evictable(upper, lower)
        except HookFailure:
            Faulty.disarm()
            assert not upper.is_owned() and not lower.is_owned()
        else:
            Faulty.disarm()
            return
    raise AssertionError("construction never got through")


@pytest.mark.parametrize("error", [MemoryError, OSError, KeyboardInterrupt, ValueError, SystemExit])
def test_any_error_counts(error):
    """Out of memory, a tier that raises, an interrupt: the error passes through unchanged."""

    class Full(HookedCarrier):
        def _allocate_like(self, size, mutable, dtype, empty, /):
            raise error("no room")

    h = cs.Evictable(make_cpu(DATA, F32), Full([], F32))
    before = look(h)
    with pytest.raises(error, match="no room"):
        h.evict()
    assert look(h) == before


@pytest.mark.parametrize(
    "answer",
    [None, 3, "carrier", lambda: HookedCarrier([0.0], F32), lambda: HookedCarrier([0.0] * 3, cs.DType.Int32)],
)
def test_a_provision_that_is_wrong(answer):
    """A hook whose answer is no Carrier, too small, or of another dtype: an error, and everything as before."""

    class Odd(HookedCarrier):
        def _allocate_like(self, size, mutable, dtype, empty, /):
            return answer() if callable(answer) else answer

    h = cs.Evictable(make_cpu(DATA, F32), Odd([], F32))
    before = look(h)
    with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
        h.evict()
    assert look(h) == before


def test_a_provision_that_is_not_fresh():
    """A hook that hands out an owned or released carrier, or a tier itself: refused, everything as before."""

    class Odd(HookedCarrier):
        given = None

        def _allocate_like(self, size, mutable, dtype, empty, /):
            return self.given

    for make in ("owned", "released", "primary", "self"):
        tier = Odd([], F32)
        h = cs.Evictable(make_cpu(DATA, F32), tier)
        stray = HookedCarrier([0.0] * 3, F32)
        token = stray.claim() if make == "owned" else None
        if make == "released":
            stray.release()
        tier.given = {"primary": h.primary, "self": tier}.get(make, stray)
        before = look(h)
        with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
            h.evict()
        assert look(h) == before, make
        assert (token is not None) is stray.is_owned()


def test_a_value_that_does_not_fit_stops_the_move():
    """A tier whose hook answers a value of another type: TypeError, everything as before."""

    class Odd(HookedCarrier):
        def _get_value(self, index, /):
            return "text" if index == 2 else self.slots[index]

    h = cs.Evictable(Odd(DATA, F32), make_file([], F32))
    folder = h.secondary.path.parent
    files = sorted(folder.iterdir())
    with pytest.raises(TypeError):
        h.evict()
    assert not h.is_evicted() and not h.primary.is_released() and h.primary.is_owned()
    assert sorted(folder.iterdir()) == files


def test_a_failing_move_leaves_no_file():
    """Disposes of the temporary: a file that was provisioned for nothing is gone."""

    class Sticky(HookedCarrier):
        def _release(self):
            raise HookFailure("stuck")

    h = cs.Evictable(Sticky(DATA, F32), make_file([], F32))
    folder = h.secondary.path.parent
    files = sorted(folder.iterdir())
    before = look(h)
    with pytest.raises(HookFailure):
        h.evict()
    assert look(h) == before and sorted(folder.iterdir()) == files


def test_the_same_move_from_inside_its_hooks():
    """Decision L: a call from inside a hook of the transition that the same thread runs is a RuntimeError."""
    seen = []

    class Curious(HookedCarrier):
        h = None

        def _get_value(self, index, /):
            if self.h is not None:
                for call in (
                    self.h.evict,
                    self.h.promote,
                    self.h.release,
                    lambda: self.h[0],
                    self.h.claim,
                    lambda: self.h.set_value(0, 1.0),
                ):
                    try:
                        call()
                    except RuntimeError:
                        seen.append("RuntimeError")
                    else:
                        seen.append("went through")
            return self.slots[index]

    tier = Curious(DATA, F32)
    h = cs.Evictable(tier, cs.CPU(3))
    tier.h = h
    h.evict()
    tier.h = None
    assert h.is_evicted() and set(seen) == {"RuntimeError"}
    h.promote()
    assert values(h) == DATA
