# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M and L: carriers as arguments and results of processes, by every start method; nothing is left behind."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
METHODS = ["fork", "spawn", "forkserver"]
methods = pytest.mark.parametrize("method", METHODS)


def run_program(code: str, method: str, folder: Path) -> None:
    """Runs a program with a `__main__` guard, whose temporary folder has no carrier's directory afterwards."""
    program, temporary = folder / "program.py", folder / "tmp"
    temporary.mkdir()
    head = f"import multiprocessing, os, sys\nsys.path.insert(0, {str(TESTS)!r})\nMETHOD = {method!r}\n"
    program.write_text(head + textwrap.dedent(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert [name for name in os.listdir(temporary) if "carrier" in name] == []


@methods
def test_arguments_and_results_of_a_pool(method, session):
    """Every kind goes there and comes back; what the worker does to its twin stays with the worker."""
    run_program(
        """
        import carrier_storage as cs
        from helpers import line
        from kinds import KINDS, Cell

        def cells():
            kinds = [k for k in KINDS if not k.custom and k.needs() is None]
            # Metal does not survive a fork.
            return [Cell(k, d) for k in kinds if (k.name, METHOD) != ("metal", "fork") for d in k.dtypes]

        def work(carrier):
            seen = carrier.tolist()
            promoted = not isinstance(carrier, cs.Evictable) or not carrier.is_evicted()
            free = promoted and not carrier.is_owned() and carrier.version == 0
            carrier.write(0, seen[1:])
            if isinstance(carrier, cs.Evictable):
                carrier.evict()
            return free, seen, carrier, cs.Tensor(carrier, 1, line(2))

        if __name__ == "__main__":
            carriers = [cell.make(4) for cell in cells()]
            carriers += [cell.evicted(4) for cell in cells() if cell.kind.evictable]
            values = [cell.samples(4) for cell in cells()]
            values += [cell.samples(4) for cell in cells() if cell.kind.evictable]
            with multiprocessing.get_context(METHOD).Pool(2) as pool:
                for c, v, (free, seen, twin, tensor) in zip(carriers, values, pool.map(work, carriers)):
                    assert free and repr(seen) == repr(v), c
                    assert type(twin) is type(c) and tensor.carrier is twin
                    v = v[1:] + v[3:]
                    assert repr(twin.tolist()) == repr(v) and repr(tensor.tolist()) == repr(v[1:3])
                    assert c.version == 0
                pool.close()
                pool.join()
        """,
        method,
        session,
    )


@methods
def test_a_process_and_a_queue(method, session):
    """As a Process's argument and through queues and pipes, large ones too."""
    run_program(
        """
        import carrier_storage as cs

        def work(f, queue, pipe):
            queue.put(f)
            pipe.send(cs.Evictable(cs.CPU(3), cs.FileBacked(dtype=cs.DType.Float32)))

        if __name__ == "__main__":
            context = multiprocessing.get_context(METHOD)
            queue, (here, there) = context.Queue(), context.Pipe()
            f = cs.FileBacked(dtype=cs.DType.Int32).new_like(range(300_000))
            process = context.Process(target=work, args=(f, queue, there))
            process.start()
            twin = queue.get(timeout=60)
            h = here.recv()
            process.join()
            assert process.exitcode == 0
            assert twin.tolist() == f.tolist() and twin.path != f.path
            assert type(h.secondary) is cs.FileBacked and h.tolist() == [0.0] * 3
        """,
        method,
        session,
    )


@methods
def test_a_file_in_a_queue_as_the_process_ends(method, session):
    """The queue's thread pickles it, perhaps only while the process ends; its file is there until then."""
    run_program(
        """
        import carrier_storage as cs

        class Slow(cs.Carrier):  # in front of the file, so that the end comes first
            def _size(self): return 1
            def _dtype(self): return cs.DType.Int32
            def _get_value(self, index): return 5
            def __reduce__(self):
                import time
                time.sleep(0.5)
                return (int, (7,))

        def put(queue):
            queue.put((Slow(), cs.FileBacked(dtype=cs.DType.Int32).new_like(range(1000))))

        def get(queue, ready):
            ready.set()
            if queue.get(timeout=60)[1].tolist() != list(range(1000)):
                print("something else came", file=sys.stderr)

        if __name__ == "__main__":
            context = multiprocessing.get_context(METHOD)
            there, back, ready = context.Queue(), context.Queue(), context.Event()
            child = context.Process(target=put, args=(there,))
            child.start()
            assert there.get(timeout=60)[1].tolist() == list(range(1000))
            child.join()
            context.Process(target=get, args=(back, ready)).start()
            ready.wait(60)
            put(back)  # and then this process ends
        """,
        method,
        session,
    )


@methods
@pytest.mark.parametrize("end", ["close", "terminate", "exit"])
def test_pool_workers_leave_no_session_directory(method, end, session):
    """However the pool ends: closed and joined, terminated, or by leaving its `with` block."""
    run_program(
        f"""
        import carrier_storage as cs
        END = {end!r}

        def work(n):
            global keep
            keep = cs.FileBacked(dtype=cs.DType.Int32).new_like(range(n))
            return keep

        if __name__ == "__main__":
            context = multiprocessing.get_context(METHOD)
            if END == "exit":
                with context.Pool(2) as pool:
                    got = pool.map(work, range(6))
            else:
                pool = context.Pool(2)
                got = pool.map(work, range(6))
                getattr(pool, END)()
                pool.join()
            assert [c.tolist() for c in got] == [list(range(n)) for n in range(6)]
        """,
        method,
        session,
    )


@methods
def test_an_executor(method, session):
    """`concurrent.futures`, whose workers end differently."""
    run_program(
        """
        import concurrent.futures
        import carrier_storage as cs

        def double(c):
            return c.new_like([2 * v for v in c])

        if __name__ == "__main__":
            context = multiprocessing.get_context(METHOD)
            c = cs.FileBacked(dtype=cs.DType.Int32).new_like([1, 2, 3])
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                assert [r.tolist() for r in pool.map(double, [c] * 5)] == [[2, 4, 6]] * 5
        """,
        method,
        session,
    )


@methods
def test_dtypes_of_ones_own(method, session):
    """Registered by the module that both sides import, they arrive as the same object."""
    run_program(
        """
        import carrier_storage as cs
        from helpers import line
        PAIR = cs.CompoundDType("Test.PairOfProcesses", planes=[cs.DType.Float32, cs.DType.Int32])

        def work(tensor):
            assert tensor.dtype() is PAIR
            return tensor

        if __name__ == "__main__":
            parts = [cs.Subtensor(cs.CPU(2, dtype=d), 0, line(2)) for d in PAIR.planes]
            t = cs.Tensor.from_subtensors(PAIR, parts, [line(2)])
            with multiprocessing.get_context(METHOD).Pool(1) as pool:
                assert pool.apply(work, (t,)).dtype() is PAIR
                pool.close()
                pool.join()
        """,
        method,
        session,
    )


@methods
def test_what_cannot_travel_is_told_to_the_caller(method, session):
    run_program(
        """
        import carrier_storage as cs

        def work(thing):
            return thing

        if __name__ == "__main__":
            c = cs.CPU(1)
            token = c.claim()
            with multiprocessing.get_context(METHOD).Pool(1) as pool:
                try:
                    pool.apply(work, (token,))
                except TypeError as error:
                    assert "token" in str(error)
                else:
                    raise SystemExit("a token was pickled")
                assert pool.apply(work, (c,)).is_mutable()
                pool.close()
                pool.join()
        """,
        method,
        session,
    )
