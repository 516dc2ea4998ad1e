# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Import, exit, forked and spawned children: no files left, no hang, nothing on stderr."""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, sys, threading
from carrier_storage import CPU, DType, Evictable, FileBacked, Generic
def stored(values=(1.0, 2.0)):
    return FileBacked(dtype=DType.Float32).new_like(values)
"""


def run(code, tmp_path, *, status=0, timeout=60):
    """Runs code in a fresh interpreter whose temporary folder is empty, and has to be empty again."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert os.listdir(tmp_path) == []
    return done


@pytest.mark.parametrize(
    "code",
    [
        "keep = stored()",
        "keep = Evictable(CPU(2), stored()); keep.evict()",
        "cycle = [stored()]; cycle.append(cycle)",
        "keep = stored(); it = iter(keep); next(it)",
        "keep = stored().claim()",
        "import builtins; builtins.keep = stored()",
        "keep = stored(); sys.exit()",
        "first = stored(); del first; second = stored()",
    ],
)
def test_exit_with_live_carriers_is_silent(code, tmp_path):
    assert run(code, tmp_path).stderr == ""


def test_exit_under_an_exception_reports_only_that(tmp_path):
    done = run("keep = stored(); raise KeyError('mine')", tmp_path, status=1)
    assert done.stderr.splitlines()[-1] == "KeyError: 'mine'"


DAEMONS = {
    "move values": """
        h = Evictable(CPU(1 << 18).new_like(CPU(1 << 18)), FileBacked(dtype=DType.Float32))
        h.evict(); h.promote(); h.release()""",
    "make files": """
        FileBacked(dtype=DType.Float32)""",
}


@pytest.mark.parametrize("work", DAEMONS)
def test_exit_while_daemon_threads_work(work, tmp_path):
    """Wherever Python stops them: neither a crash nor a word."""
    done = run(
        f"""
        import tempfile, time
        tempfile.gettempdir()  # which leaves a file when it is stopped
        def work():
            while True:
                {textwrap.dedent(DAEMONS[work]).strip().replace(chr(10), "; ")}
        for _ in range(6):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
        tmp_path,
    )
    assert done.stderr == ""


def test_import_does_nothing_global(tmp_path):
    run(
        """
        assert "numpy" not in sys.modules
        assert threading.active_count() == 1
        assert len(os.listdir("/proc/self/task")) == 1
        assert os.listdir(os.environ["TMPDIR"]) == []
        CPU(3), Generic([1], dtype=DType.Int32)
        assert os.listdir(os.environ["TMPDIR"]) == []
        """,
        tmp_path,
    )


def test_reload_keeps_identity(tmp_path):
    run(
        """
        import carrier_storage, importlib
        before, c = carrier_storage.CPU, CPU(1)
        dtype = carrier_storage.DType.Float32
        again = importlib.reload(carrier_storage)
        assert again.CPU is before and isinstance(c, again.CPU) and again.DType.Float32 is dtype
        assert c.dtype() is dtype
        """,
        tmp_path,
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_leave_nothing(method, session, tmp_path):
    script = tmp_path / "work"
    script.mkdir()
    program = script / "main.py"
    program.write_text(
        PRELUDE
        + textwrap.dedent(
            f"""
            import multiprocessing
            def work(n):
                global keep
                keep = stored([float(n)])
                return list(keep), os.path.dirname(keep.path)
            if __name__ == "__main__":
                mine = stored()
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    results = pool.map(work, range(4))
                    pool.close(); pool.join()
                assert [values for values, _ in results] == [[0.0], [1.0], [2.0], [3.0]]
                folders = {{folder for _, folder in results}}
                assert os.path.dirname(mine.path) not in folders
                assert not any(os.path.exists(folder) for folder in folders), "a child left its folder"
                assert list(mine) == [1.0, 2.0]
            """
        )
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [name for name in os.listdir(session) if "carrier" in name] == []


def test_a_forked_child_leaves_the_parents_file_alone(tmp_path):
    run(
        """
        f = stored()
        child = os.fork()
        if child == 0:
            ok = list(f) == [1.0, 2.0]
            try:
                f[0] = 5.0
                ok = False
            except RuntimeError as error:
                ok = ok and "fork" in str(error)
            f.release()
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert list(f) == [1.0, 2.0] and f.path.exists()
        """,
        tmp_path,
    )


def test_ctrl_c_reaches_a_long_ingest_and_changes_nothing(tmp_path):
    run(
        """
        import itertools, signal, time
        for proto in (CPU(1), FileBacked(dtype=DType.Float32), Generic([1.0], dtype=DType.Float32)):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            try:
                proto.new_like(itertools.repeat(1.0))
            except KeyboardInterrupt:
                continue
            raise SystemExit("not interrupted")
        """,
        tmp_path,
    )


def test_a_long_ingest_lets_other_threads_run(tmp_path):
    """An iterator in C gives the interpreter's lock up to nobody, so the library has to."""
    run(
        """
        import itertools, signal
        for proto in (CPU(1), FileBacked(dtype=DType.Float32), Generic([1.0], dtype=DType.Float32)):
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                proto.new_like(itertools.repeat(1.0))
            except KeyboardInterrupt:
                continue
            raise SystemExit("not interrupted")
        """,
        tmp_path,
    )
