# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, copy and deepcopy: what only they do. What a twin is, test_pickle.py shows for all ways."""

import copy

import carrier_storage as cs
import pytest

from exchange.twins import COPIES, Travelling, check_twin
from helpers import line, run_child, state
from kinds import I32, Cell, each, make_cpu

copies = pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)


@each(lambda kind: not kind.custom)
def test_large_carriers(cell: Cell):
    """Bulk work, in chunks."""
    n = 70_000
    c = cell.make(n)
    for make_copy in COPIES.values():
        check_twin(make_copy(c), c, cell.samples(n))


@each(lambda kind: not kind.custom)
def test_a_deep_copy_keeps_what_is_shared(cell: Cell):
    """The memo is respected: one carrier, one twin, its Tensors with it."""
    c = cell.make(4)
    t = cs.Tensor(c, 1, line(2))
    got = copy.deepcopy({"c": [c, c], "t": t, "also": cs.Tensor(c, 0, line(4))})
    twin = got["c"][0]
    assert twin is got["c"][1] is got["t"].carrier is got["also"].carrier and twin is not c
    check_twin(twin, c, cell.samples(4))
    memo = {}
    first = copy.deepcopy(c, memo)
    assert copy.deepcopy(c, memo) is first and copy.deepcopy(t, memo).carrier is first


def test_a_shallow_copy_of_a_container_shares():
    c = cs.CPU(1)
    assert copy.copy([c])[0] is c


@copies
def test_a_copied_tensor_writes_to_its_own_carrier(make_copy):
    c = make_cpu(range(4), I32)
    t = cs.Tensor(c, 1, line(2))
    twin = make_copy(t)
    twin.fill(9)
    assert twin.carrier.tolist() == [0, 9, 9, 3] and c.tolist() == [0, 1, 2, 3] and c.version == 0


@copies
def test_a_tensor_over_a_custom_carrier(make_copy):
    c = Travelling([1, 2, 3], I32)
    twin = make_copy(cs.Tensor(c, 1, line(2)))
    assert type(twin.carrier) is Travelling and twin.carrier is not c and twin.tolist() == [2, 3]

    class Odd(Travelling):
        def __reduce__(self):
            return (list, ((),))

    with pytest.raises(TypeError, match="Carrier"):
        make_copy(cs.Tensor(Odd([1], I32), 0, line(1)))


@copies
def test_a_full_disk(make_copy, tmp_path):
    """The copy of a file needs room for another; without it nothing changes."""
    run_child(
        f"""
        import copy, resource, signal
        import carrier_storage as cs
        f = cs.FileBacked(dtype=cs.DType.Int32).new_like(range(100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            copy.{make_copy.__name__}(f)
        except OSError:
            pass
        else:
            raise SystemExit("no error")
        assert len(list(f.path.parent.iterdir())) == 1 and f.tolist() == list(range(100_000))
        """,
        env={"TMPDIR": str(tmp_path)},
    )


@copies
def test_interrupted(make_copy):
    """Ctrl-C while copying leaves the original as it was and no copy."""
    run_child(
        f"""
        import copy, signal
        import carrier_storage as cs
        h = cs.Evictable(cs.CPU(30_000_000), cs.FileBacked(dtype=cs.DType.Float32))
        h[5] = 1.0
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        try:
            while True:
                copy.{make_copy.__name__}(h)
        except KeyboardInterrupt:
            pass
        assert h[5] == 1.0 and h.version == 1 and not h.is_evicted()
        h.evict()
        """
    )


@each(lambda kind: not kind.custom)
def test_the_original_is_as_it_was(cell: Cell):
    c = cell.make(3)
    before = state(c)
    for make_copy in COPIES.values():
        make_copy(c).release()
    assert state(c) == before
