# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions I: the session directory, its reaper, forks and names. Everything in child processes."""

import os
import stat
import textwrap

import pytest

from helpers import run_child

START = """
import os, sys, gc, signal, stat, tempfile
from pathlib import Path
import carrier_storage as cs
F32, I32 = cs.DType.Float32, cs.DType.Int32
parent = Path(tempfile.gettempdir())
def sessions():
    return sorted(p.name for p in parent.iterdir())
def make(values=(1.0, 2.0)):
    return cs.FileBacked(dtype=F32).new_like(values)
"""

FORK = """
def in_child(act, ending=os._exit):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except SystemExit:
            raise                       # the orderly end of a child of this child
        except BaseException as error:
            print(repr(error), flush=True)
        ending(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
def refused(call, word="fork"):
    try:
        call()
    except RuntimeError as error:
        assert word in str(error), error
    else:
        raise AssertionError("went through")
"""


def child(code, **options):
    return run_child(START + FORK + textwrap.dedent(code), **options)


def test_directory_and_modes(session):
    """<tempdir>/.carrier-storage-<pid>-<random>, created at first use, mode 0700, files 0600."""
    child(
        """
        os.umask(0)
        assert sessions() == []
        cs.CPU(1), cs.Generic([], dtype=F32)
        assert sessions() == []
        f = cs.FileBacked(dtype=F32)
        g = make()
        (name,) = sessions()
        head, pid, random = name.rsplit("-", 2)
        assert head == ".carrier-storage" and int(pid) == os.getpid() and random
        assert f.path.parent == parent / name == g.path.parent
        assert stat.S_IMODE((parent / name).stat().st_mode) == 0o700
        assert stat.S_IMODE(f.path.stat().st_mode) == 0o600 == stat.S_IMODE(g.path.stat().st_mode)
        """
    )
    assert os.listdir(session) == []


def test_the_directory_follows_tempfile(session):
    """<tempfile.gettempdir()>: what Python says at first use."""
    other = session / "other"
    other.mkdir()
    child(
        f"""
        tempfile.tempdir = {str(other)!r}
        f = cs.FileBacked(dtype=F32)
        assert f.path.parent.parent == Path({str(other)!r})
        """
    )
    assert os.listdir(other) == []


def test_descriptors_are_not_inherited(session):
    """O_CLOEXEC: a program started by us sees none of our files."""
    child(
        """
        import subprocess
        kept = [make() for _ in range(5)]
        [list(c) for c in kept]
        code = (
            "import os; folder = '/proc/self/fd/'; "
            "print([os.readlink(folder + n) for n in os.listdir(folder) if os.path.exists(folder + n)])"
        )
        if os.path.isdir("/proc/self/fd"):
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, close_fds=False).stdout
            assert "carrier-storage" not in out, out
        """
    )


@pytest.mark.parametrize("ending", ["sys.exit(0)", "sys.exit(0 if keep else 1)", "pass"])
def test_every_orderly_end_removes_the_directory(session, ending):
    """Process shutdown removes the directory, with live carriers in globals and cycles."""
    child(f"keep = [make(), cs.Evictable(make(), cs.CPU(1))]; keep.append(keep); keep[1].evict(); {ending}")
    assert os.listdir(session) == []


def test_an_end_by_exception_removes_the_directory(session):
    """... by an uncaught exception too."""
    done = child("keep = make(); raise SystemExit(3)", check=False)
    assert (done.returncode, done.stderr) == (3, "") and os.listdir(session) == []
    done = child("keep = make(); raise LookupError('mine')", check=False)
    assert done.stderr.strip().endswith("LookupError: 'mine'") or "mine" in done.stderr.splitlines()[-1]
    assert done.returncode == 1 and os.listdir(session) == []


def test_foreign_files_do_not_hinder(session):
    """A file that somebody else put into the directory neither hinders the shutdown nor makes noise."""
    child("keep = make(); (keep.path.parent / 'stray').write_text('x')")
    assert os.listdir(session) == [] or all(n.startswith(".carrier-storage") for n in os.listdir(session))


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_killed_processes_are_reaped(session, ending):
    """Directories left by killed processes are reaped when the next session directory is created there."""
    child(f"keep = make(); keep.path.parent.joinpath('more').write_text('x'); {ending}", check=False)
    (left,) = os.listdir(session)
    child("cs.CPU(1); assert len(sessions()) == 1")  # no session, no reaping
    assert os.listdir(session) == [left]
    child(f"f = make(); assert {left!r} not in sessions() and len(sessions()) == 1")
    assert os.listdir(session) == []


def test_the_living_are_not_reaped(session):
    """A lock tells the dead from the living."""
    child(
        """
        import subprocess
        f = make()
        mine = sessions()
        code = (
            "import carrier_storage as cs, os; kept = cs.FileBacked(dtype=cs.DType.Float32); "
            "print(len(os.listdir(os.environ['TMPDIR'])))"
        )
        for _ in range(2):
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert (out.stdout.strip(), out.stderr) == ("2", ""), out
        assert sessions() == mine and list(f) == [1.0, 2.0]
        """
    )


def test_what_only_looks_like_a_session_is_left_alone(session):
    """The reaper touches nothing but dead session directories of this user."""
    (session / ".carrier-storage-1-file").write_text("a file")
    (session / ".carrier-storage-link").symlink_to(session / "target")
    (session / "target").mkdir()
    (session / "target" / "kept").write_text("x")
    (session / ".other").mkdir()
    child("make()")
    assert (session / "target" / "kept").read_text() == "x"
    assert (session / ".other").is_dir() and (session / ".carrier-storage-1-file").exists()


def test_a_child_makes_its_own_directory(session):
    """A forked child makes its own and never touches its parent's files."""
    child(
        """
        f = make()
        before = sessions()
        def act():
            assert list(f) == [1.0, 2.0]           # an inherited carrier may be read
            g = make([5.0])
            assert g.path.parent != f.path.parent and str(os.getpid()) in g.path.parent.name
            assert list(g) == [5.0]
            assert f.path.exists()
        in_child(act)
        assert f.path.exists() and list(f) == [1.0, 2.0]
        f[0] = 3.0
        in_child(lambda: (gc.collect(), None))
        in_child(lambda: list(f), ending=sys.exit)   # the child's own shutdown leaves the parent's files
        assert f.path.exists() and list(f) == [3.0, 2.0]
        assert set(before) <= set(sessions())
        """
    )
    child("make()")  # reaps what children that ended by os._exit left
    assert os.listdir(session) == []


def test_an_inherited_carrier_in_a_child(session):
    """Writing, growing and evicting to it are RuntimeErrors that name the fork; releasing it forgets it."""
    child(
        """
        f = make()
        small = cs.Evictable(cs.CPU(2), f)
        g = make((3.0, 4.0))
        def act():
            refused(lambda: g.__setitem__(0, 1.0))
            refused(lambda: g.set_value(0, 1.0))
            refused(lambda: g.grow(9))
            assert list(g) == [3.0, 4.0] and g.version == 0
            path = g.path
            g.release()
            assert g.is_released() and path.exists()
        in_child(act)
        assert g.path.exists() and list(g) == [3.0, 4.0]
        def evicting():
            refused(small.evict)
            assert not small.is_evicted() and list(small) == [0.0, 0.0]
        in_child(evicting)
        small.evict()
        small.promote()
        """
    )
    child("make()")
    assert os.listdir(session) == []


def test_dropping_an_inherited_carrier(session):
    """Dropping forgets it and leaves the file."""
    child(
        """
        box = [make()]
        path = box[0].path
        def act():
            box.clear()
            gc.collect()
            assert path.exists()
        in_child(act, ending=sys.exit)
        assert path.exists() and list(box[0]) == [1.0, 2.0]
        """
    )
    child("make()")
    assert os.listdir(session) == []


def test_an_inherited_secondary_that_is_too_small(session):
    """Evicting onto it makes a new file in the child's own directory; an evicted hierarchy can be promoted."""
    child(
        """
        h = cs.Evictable(cs.CPU(4), cs.FileBacked(dtype=F32))
        down = cs.Evictable(cs.CPU(0).new_like([1.0, 2.0, 3.0]), cs.FileBacked(dtype=F32))
        down.evict()
        held = down.secondary.path
        def act():
            h[1] = 5.0
            h.evict()
            assert str(os.getpid()) in h.secondary.path.parent.name
            h.promote()
            assert list(h) == [0.0, 5.0, 0.0, 0.0]
            down.promote()
            assert list(down) == [1.0, 2.0, 3.0] and held.exists()
        in_child(act)
        assert held.exists()
        down.promote()
        assert list(down) == [1.0, 2.0, 3.0] and not held.exists()
        """
    )
    child("make()")
    assert os.listdir(session) == []


def test_a_child_of_a_child(session):
    """Only the process that made the directory removes it."""
    child(
        """
        f = make()
        def inner():
            refused(lambda: f.__setitem__(0, 1.0))
            make()
        def act():
            g = make([7.0])
            in_child(inner, ending=sys.exit)
            assert list(g) == [7.0] and g.path.exists()
            in_child(inner)
        in_child(act, ending=sys.exit)
        assert list(f) == [1.0, 2.0]
        """
    )
    child("make()")
    assert os.listdir(session) == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(session, method):
    """Decision L: fork, spawn: no files, no hangs and no noise on stderr."""
    program = session.parent / f"{session.name}_pool.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "import carrier_storage as cs\n"
        "def work(n):\n"
        "    f = cs.FileBacked(dtype=cs.DType.Int32).new_like(range(n))\n"
        "    globals()['kept'] = f\n"
        "    return sum(f)\n"
        "if __name__ == '__main__':\n"
        "    mine = cs.FileBacked(dtype=cs.DType.Int32).new_like([7])\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        assert pool.map(work, [3, 4, 5]) == [3, 6, 10]\n"
        "        pool.close()\n"
        "        pool.join()\n"
        "    assert list(mine) == [7] and mine.path.exists()\n"
    )
    run_child(f"import subprocess; sys.exit(subprocess.call([sys.executable, {str(program)!r}]))")
    left = [n for n in os.listdir(session) if n.startswith(".carrier-storage")]
    assert left == []


def test_ten_thousand_files_under_a_small_limit(session):
    """Live carriers are not limited by the descriptor limit: ten thousand work under ulimit -n 256."""
    child(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        kept, proto = [], cs.FileBacked(dtype=I32)
        for i in range(10_000):
            kept.append(proto.new_like([i]))
        assert [kept[i][0] for i in range(0, 10_000, 97)] == list(range(0, 10_000, 97))
        for i in range(0, 10_000, 501):
            kept[i][0] = -i
        assert all(kept[i][0] == -i for i in range(0, 10_000, 501))
        h = cs.Evictable(cs.CPU(3), cs.FileBacked(dtype=F32))
        h.evict()
        h.promote()
        """,
        timeout=120,
    )
    assert os.listdir(session) == []


def test_descriptors_taken_by_others(session):
    """A process at its descriptor limit still reads and writes what it has, or says EMFILE."""
    child(
        """
        import errno, resource
        kept = [make([float(i)]) for i in range(50)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        hogs = []
        try:
            while True:
                hogs.append(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE
        seen = 0
        for i, c in enumerate(kept):
            try:
                assert c[0] == i
                seen += 1
            except OSError as error:
                assert error.errno == errno.EMFILE, error
        for fd in hogs:
            os.close(fd)
        assert [c[0] for c in kept] == [float(i) for i in range(50)]
        """
    )


def test_the_directory_is_gone_behind_our_back(session):
    """Somebody removed the directory: an OSError, no crash, and no noise at the end."""
    child(
        """
        import shutil
        f = make()
        shutil.rmtree(f.path.parent)
        try:
            cs.FileBacked(dtype=F32)
        except OSError:
            pass
        f.release()
        """
    )
    assert os.listdir(session) == []
    assert stat.S_ISDIR(os.stat(session).st_mode)


def test_no_place_to_put_it():
    """A temporary directory that cannot be written: OSError, with its path."""
    done = run_child(
        """
        import tempfile
        import carrier_storage as cs
        tempfile.tempdir = "/proc/nowhere"
        try:
            cs.FileBacked(dtype=cs.DType.Float32)
        except OSError as error:
            print(error.filename)
        """
    )
    assert "/proc/nowhere" in done.stdout
