# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions L: processes end and fork without files, hangs or noise."""

import os

import pytest

from helpers import run_child

LIVE = """
import atexit, gc, os, sys, threading
import carrier_storage as cs
from customs import HookedCarrier
F32 = cs.DType.Float32
class Cyclic(HookedCarrier):
    pass
keep = [
    cs.CPU(10), cs.Generic([1.0], dtype=F32), cs.FileBacked(dtype=F32), cs.FileBacked("named", dtype=F32),
    cs.Evictable(cs.CPU(3), cs.FileBacked(dtype=F32)), Cyclic([1.0], F32),
    cs.Evictable(Cyclic([1.0], F32), cs.CPU(1)), cs.CPU(1).claim(),
    cs.Tensor(cs.CPU(1), 0, cs.Layout(cs.Shape(1), cs.Stride(1))),
]
keep[4].evict()
keep[5].me = keep
keep.append(keep)
"""

ENDINGS = {
    "fall off the end": "",
    "sys.exit": "sys.exit(0)",
    "daemon thread holds carriers": """
def work(held=cs.FileBacked(dtype=F32)):
    threading.Event().wait()
threading.Thread(target=work, daemon=True).start()
""",
    "daemon thread moves values": """
h = cs.Evictable(cs.CPU(100_000), cs.FileBacked(dtype=F32))
def work():
    while True:
        h.evict()
        h.promote()
threading.Thread(target=work, daemon=True).start()
while not h.is_evicted(): pass
""",
    "atexit uses carriers": """
def late():
    f = cs.FileBacked(dtype=F32).new_like([1.0])
    assert list(f) == [1.0] and keep[0][0] == 0.0
atexit.register(late)
""",
    "modules hold carriers": "sys.held = keep; cs.held = keep; os.held = cs.FileBacked(dtype=F32)",
    "gc is off": "gc.disable()",
    "frozen": "gc.freeze()",
    "open scope": "scope = keep[0].claim().access(); scope.__enter__()",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_exit_with_live_carriers(session, ending):
    """Exit with live carriers leaves no files, no hangs and no noise on stderr."""
    run_child(LIVE + ending)
    assert os.listdir(session) == []


def test_exit_under_exceptions(session):
    """Exit under exceptions: only the exception's own words."""
    done = run_child(LIVE + "\ndef f(held):\n    raise LookupError('mine')\nf(keep)", check=False)
    assert done.returncode == 1 and os.listdir(session) == []
    lines = done.stderr.strip().splitlines()
    assert lines[0].startswith("Traceback") and lines[-1] == "LookupError: mine"
    assert not any("nanobind" in line or "leak" in line for line in lines)


def test_exit_by_ctrl_c(session):
    """... by KeyboardInterrupt in the middle of a move."""
    done = run_child(
        LIVE
        + """
import itertools, signal
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
signal.setitimer(signal.ITIMER_REAL, 0.05)
keep[2].new_like(itertools.repeat(1.0))
""",
        check=False,
    )
    assert "KeyboardInterrupt" in done.stderr and os.listdir(session) == []


def test_fork_with_live_carriers(session):
    """Fork: the child uses what it inherited, and both end without noise."""
    run_child(
        LIVE
        + """
pid = os.fork()
if pid == 0:
    keep[0][0] = 5.0
    assert keep[0][0] == 5.0 and keep[1][0] == 1.0
    keep[6].evict(); keep[6].promote()
    keep.clear()
    gc.collect()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert keep[0][0] == 0.0
keep[4].promote()
"""
    )
    assert os.listdir(session) == []


def test_fork_from_a_thread_beside_moves(session):
    """A fork while other threads move values: the child can use the library."""
    run_child(
        """
        import os, sys, threading
        import carrier_storage as cs
        F32 = cs.DType.Float32
        stop = threading.Event()
        cs.FileBacked(dtype=F32)  # imports what it needs: Python's own import locks do not survive a fork
        def work():
            h = cs.Evictable(cs.CPU(10_000), cs.FileBacked(dtype=F32))
            while not stop.is_set():
                h.evict()
                h.promote()
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads: t.start()
        for _ in range(15):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    h = cs.Evictable(cs.CPU(100), cs.FileBacked(dtype=F32))
                    h.evict()
                    h.promote()
                    f = cs.FileBacked(dtype=F32).new_like([1.0, 2.0])
                    status = 0 if list(f) == [1.0, 2.0] else 2
                finally:
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for t in threads: t.join()
        """
    )
    run_child("import carrier_storage as cs; cs.FileBacked(dtype=cs.DType.Float32)")
    assert os.listdir(session) == []


def test_spawn_carries_nothing_over(session):
    """Spawn: a fresh process with a session of its own."""
    run_child(
        """
        import subprocess, sys
        import carrier_storage as cs
        f = cs.FileBacked(dtype=cs.DType.Float32)
        code = "import carrier_storage as cs; print(cs.FileBacked(dtype=cs.DType.Float32).path.parent)"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert out.stdout.strip() != str(f.path.parent) and out.stderr == ""
        """
    )
    assert os.listdir(session) == []
