# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions L: threads and signals. Each test in a process of its own, so that a hang or a crash is one failure."""

import textwrap

import pytest

from helpers import run_child

START = """
import itertools, os, signal, sys, threading
import carrier_storage as cs
from customs import HookedCarrier
from helpers import line, state, tensor, values
F32, I32 = cs.DType.Float32, cs.DType.Int32
problems = []
def run(*works):
    def guarded(work):
        try:
            work()
        except BaseException as error:
            problems.append(repr(error))
    threads = [threading.Thread(target=guarded, args=(w,)) for w in works]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not problems, problems
def kinds():
    yield cs.CPU(64, dtype=I32)
    yield cs.Generic([0] * 64, dtype=I32)
    yield cs.FileBacked(dtype=I32).allocate_like(64)
    yield HookedCarrier([0] * 64, I32)
    yield cs.Evictable(cs.CPU(64, dtype=I32), cs.FileBacked(dtype=I32))
    yield cs.Evictable(HookedCarrier([0] * 64, I32), cs.CPU(0, dtype=I32))
def alarm(seconds=0.05):
    def handler(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
def interrupted(call):
    alarm()
    try:
        call()
    except KeyboardInterrupt:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("not interrupted")
"""


def child(code, **options):
    return run_child(START + textwrap.dedent(code), **options)


def test_writes_from_several_threads_are_counted():
    """Any interleaving of public calls is memory-safe; every successful mutation counts once."""
    child(
        """
        sys.setswitchinterval(1e-6)
        for c in kinds():
            n = 400
            def work(k):
                def go():
                    for i in range(n):
                        c[k] = i
                return go
            run(*(work(k) for k in range(4)))
            assert c.version == 4 * n and values(c)[:4] == [n - 1] * 4
        """
    )


def test_release_meets_reads_and_writes():
    """... release beside reads, writes, scatter, factories: clean errors or right values."""
    child(
        """
        sys.setswitchinterval(1e-6)
        for round in range(4):
            for c in kinds():
                t = tensor(c)
                go = threading.Barrier(4)
                def user(act):
                    def work():
                        go.wait()
                        for i in range(150):
                            try:
                                act(i)
                            except (RuntimeError, IndexError, NotImplementedError):
                                pass
                    return work
                def end():
                    go.wait()
                    for i in range(round * 40): pass
                    c.release()
                def read(i):
                    assert c[i % 64] in (0, 1)
                def scatter(i):
                    c.scatter(t, t, line(64))
                    assert c.new_like([1, 2])[1] == 2
                run(user(read), user(lambda i: c.set_value(i % 64, 1)), user(scatter), end)
                assert c.is_released() and c.size() == 0
        """
    )


def test_accesses_meet_transitions():
    """Transitions of one hierarchy are serialized; an access that meets one waits for it."""
    child(
        """
        sys.setswitchinterval(1e-6)
        n = 50_000
        h = cs.Evictable(cs.CPU(0, dtype=I32).new_like(range(n)), cs.FileBacked(dtype=I32))
        stop = threading.Event()
        def mover():
            for _ in range(40):
                h.evict()
                h.promote()
        def reader():
            while not stop.is_set():
                for i in (0, 7, n - 1):
                    try:
                        assert h[i] == i
                    except RuntimeError as error:
                        assert "promote" in str(error), error
        def movers():
            run(mover, mover)
            stop.set()
        run(movers, reader)
        h.promote()
        assert values(h)[::997] == list(range(0, n, 997)) and h.version == 0
        """
    )


def test_transitions_meet_release_and_drop():
    """... transitions, release and dropping are safe beside each other."""
    child(
        """
        sys.setswitchinterval(1e-6)
        for k in range(20):
            h = cs.Evictable(cs.CPU(20_000), cs.FileBacked(dtype=F32))
            def mover():
                try:
                    for _ in range(10):
                        h.evict()
                        h.promote()
                except RuntimeError as error:
                    assert h.is_released(), error
            def ender():
                for _ in range(k * 100): pass
                h.release()
            run(mover, ender, mover)
            assert h.is_released() and h.primary.is_released() and h.secondary.is_released()
        """
    )


def test_transitions_of_different_hierarchies():
    """Different hierarchies move side by side; with tiers in Python too."""
    child(
        """
        def work(make):
            def go():
                h = make()
                for i in range(30):
                    h[0] = i
                    h.evict()
                    h.promote()
                    assert h[0] == i
            return go
        run(*(work(lambda: cs.Evictable(cs.CPU(10_000), cs.FileBacked(dtype=F32))) for _ in range(3)),
            work(lambda: cs.Evictable(HookedCarrier([0.0] * 20, F32), cs.CPU(1))),
            work(lambda: cs.Evictable(cs.CPU(20), HookedCarrier([], F32))))
        """
    )


COUNT = """
        sys.setswitchinterval(60)        # nobody is asked to give the interpreter up
        ticks, stop, started = [0], threading.Event(), threading.Event()
        import time
        def count():
            started.set()
            while not stop.is_set():
                ticks[0] += 1
                time.sleep(0)            # gives it up by itself
        counter = threading.Thread(target=count)
        counter.start()
        started.wait()
        def runs_without_the_lock(call):
            for _ in range(20):
                before = ticks[0]
                call()
                if ticks[0] != before:
                    return True
            return False
"""


@pytest.mark.parametrize(
    "call",
    [
        "lambda: (h.evict(), h.promote())",
        "lambda: c.new_like(source)",
        "lambda: f.new_like(source)",
        "lambda: c.scatter(tensor(c), tensor(c), line(n))",
    ],
)
def test_bulk_work_runs_without_the_interpreter_lock(call):
    """Bulk work runs without the interpreter lock: another thread gets on meanwhile."""
    child(
        COUNT
        + f"""
        import array
        n = 1 << 22
        source = array.array("d", bytes(8 * n))
        c, f = cs.CPU(n), cs.FileBacked(dtype=F32)
        h = cs.Evictable(cs.CPU(n), cs.FileBacked(dtype=F32))
        try:
            assert runs_without_the_lock({call})
        finally:
            stop.set()
            counter.join()
        """
    )


BLOCKING = """
        entered, go_on = threading.Event(), threading.Event()
        class Slow(HookedCarrier):
            armed = False
            def _get_value(self, index, /):
                if self.armed and index == 1:
                    entered.set()
                    assert go_on.wait(30)
                return self.slots[index]
        tier = Slow([1.0, 2.0, 3.0], F32)
        h = cs.Evictable(tier, cs.FileBacked(dtype=F32))
        tier.armed = True
"""


def test_an_access_waits_for_a_running_transition():
    """An access that meets a running transition waits for it, then answers by what it finds."""
    child(
        BLOCKING
        + """
        outcomes = []
        def access():
            entered.wait()
            try:
                h[0]
            except RuntimeError as error:
                outcomes.append("promote" in str(error) and h.is_evicted())
        def open_the_gate():
            entered.wait()
            go_on.set()
        run(h.evict, access, access, open_the_gate)
        assert outcomes == [True, True]
        """
    )


def test_waiting_is_open_to_ctrl_c():
    """Waiting is open to Ctrl-C: the waiter is interrupted, the transition is not."""
    child(
        BLOCKING
        + """
        mover = threading.Thread(target=h.evict)
        mover.start()
        entered.wait()
        for call in (lambda: h[0], lambda: h.set_value(0, 1.0), h.promote, h.evict, h.release):
            interrupted(call)
        assert h.version == 0
        go_on.set()
        mover.join()
        assert h.is_evicted()
        tier.armed = False
        h.promote()
        assert values(h) == [1.0, 2.0, 3.0]
        """
    )


def test_a_second_transition_waits_its_turn():
    """Transitions of one hierarchy are serialized."""
    child(
        BLOCKING
        + """
        def second():
            entered.wait()
            go_on.set()
            h.promote()
        run(h.evict, second)
        assert not h.is_evicted() or h.primary.is_released()
        h.promote()
        tier.armed = False
        assert values(h) == [1.0, 2.0, 3.0]
        """
    )


def test_a_fork_in_mid_transition():
    """Any use, in a forked child, of a hierarchy that was in transition at the fork is a RuntimeError."""
    child(
        BLOCKING
        + """
        mover = threading.Thread(target=h.evict)
        mover.start()
        entered.wait()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            wrong = []
            for call in (lambda: h[0], h.evict, h.promote, lambda: h.set_value(0, 1.0), h.release):
                try:
                    call()
                except RuntimeError:
                    continue
                except BaseException as error:
                    wrong.append(repr(error))
                wrong.append("went through")
            if wrong: print(wrong, flush=True)
            os._exit(1 if wrong else 0)
        assert os.waitpid(pid, 0)[1] == 0
        go_on.set()
        mover.join()
        tier.armed = False
        h.promote()
        assert values(h) == [1.0, 2.0, 3.0]
        """
    )


@pytest.mark.parametrize(
    "make",
    [
        "cs.CPU(2)",
        "cs.Generic([0.0, 0.0], dtype=F32)",
        "cs.FileBacked(dtype=F32).allocate_like(2)",
        "HookedCarrier([0.0, 0.0], F32)",
        "cs.Evictable(cs.CPU(2), cs.FileBacked(dtype=F32))",
    ],
)
def test_ctrl_c_during_ingest(make):
    """Ctrl-C during bulk work is honoured while nothing visible has changed: an endless iterable in C."""
    child(
        f"""
        c = {make}
        before = state(c)
        interrupted(lambda: c.new_like(itertools.repeat(1.0)))
        interrupted(lambda: c.new_like(itertools.repeat(None)) if type(c).__name__ != "Generic" else signal.pause())
        assert state(c) == before
        c[0] = 5.0
        assert c.new_like([1.0])[0] == 1.0
        """
    )


def test_ctrl_c_during_a_transition():
    """Ctrl-C at any moment of a move leaves the state of a failed call, or a move that is done."""
    child(
        """
        n = 1 << 23
        h = cs.Evictable(cs.CPU(n, dtype=I32), cs.FileBacked(dtype=I32))
        h[0], h[n - 1] = 7, 9
        hit = 0
        for k in range(10):
            move = h.promote if h.is_evicted() else h.evict
            was = h.is_evicted()
            alarm(0.0005 * (k + 1) ** 2)
            try:
                move()
            except KeyboardInterrupt:
                hit += 1
                assert h.is_evicted() in (True, False)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert h.version == 2 and h.size() == n
            assert h.primary.is_released() is h.is_evicted()
        h.promote()
        assert (h[0], h[1], h[n - 1]) == (7, 0, 9)
        folder = cs.FileBacked(dtype=F32).path.parent
        assert len(os.listdir(folder)) <= 1
        """
    )


def test_ctrl_c_during_hooks():
    """A KeyboardInterrupt inside a hook of a transition is an error like another."""
    child(
        """
        class Slow(HookedCarrier):
            armed = False
            def _get_value(self, index, /):
                if self.armed:
                    signal.pause()
                return self.slots[index]
        tier = Slow([1.0, 2.0], F32)
        h = cs.Evictable(tier, cs.FileBacked(dtype=F32))
        tier.armed = True
        interrupted(h.evict)
        tier.armed = False
        assert not h.is_evicted() and values(h) == [1.0, 2.0] and h.primary.is_owned()
        h.evict()
        h.promote()
        assert values(h) == [1.0, 2.0]
        """
    )


def test_hooks_in_other_threads():
    """Hooks that use threads of their own while a transition runs do not hang it."""
    child(
        """
        class Social(HookedCarrier):
            h = None
            def _get_value(self, index, /):
                if self.h is not None:
                    h = self.h
                    t = threading.Thread(target=lambda: (h.size(), h.version, h.dtype(), h.is_evicted()))
                    t.start()
                    t.join(20)
                    assert not t.is_alive()
                return self.slots[index]
        tier = Social([1.0, 2.0], F32)
        h = cs.Evictable(tier, cs.CPU(2))
        tier.h = h
        h.evict()
        tier.h = None
        h.promote()
        assert values(h) == [1.0, 2.0]
        """
    )
