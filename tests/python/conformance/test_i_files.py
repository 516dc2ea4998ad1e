# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions I: grow, full disks, files cut short."""

import errno
import os
import shutil
import subprocess

import carrier_storage as cs
import pytest

from helpers import run_child, state, values
from kinds import F32, I32


@pytest.fixture(params=[F32, I32], ids=lambda d: d.name)
def file(request):
    return cs.FileBacked(dtype=request.param).new_like([1, 2, 3])


def test_grow_extends_with_zeros(file):
    """grow(size) extends with zeros; is not a value mutation; the file is exactly 4 × size bytes."""
    assert file.grow(5) is None
    assert (values(file), file.size(), file.version) == ([1, 2, 3, 0, 0], 5, 0)
    assert file.path.stat().st_size == 20
    file.grow(5)
    file.grow(size=6)
    assert file.path.stat().st_size == 24
    file[5] = 9
    file.grow(100_000)
    assert (file[5], file[99_999], file.path.stat().st_size) == (9, 0, 400_000)


def test_grow_never_shrinks(file):
    """Never shrinks: ValueError."""
    before = state(file)
    for size in (2, 0, -1, -(2**70)):
        with pytest.raises(ValueError):
            file.grow(size)
    assert state(file) == before and file.path.stat().st_size == 12


def test_grow_needs_public_mutability(file):
    """Needs public mutability: immutable, owned, released."""
    frozen = file.new_like([1], mutable=False)
    with pytest.raises(RuntimeError):
        frozen.grow(5)
    token = file.claim()
    with pytest.raises(RuntimeError):
        file.grow(5)
    with token.access():
        file.grow(5)
    token.relinquish()
    assert file.size() == 5 and frozen.size() == 1
    file.release()
    with pytest.raises(RuntimeError):
        file.grow(6)


def test_grow_of_a_tier():
    """A tier is owned: it does not grow under its hierarchy."""
    lower = cs.FileBacked(dtype=F32)
    h = cs.Evictable(cs.CPU(2), lower)
    with pytest.raises(RuntimeError):
        lower.grow(5)
    h.evict()
    with pytest.raises(RuntimeError):
        h.secondary.grow(5)


def test_grow_takes_integers(file):
    """Anything with __index__; decision D."""
    for other in (5.0, "5", None):
        with pytest.raises(TypeError):
            file.grow(other)
    for huge in (2**61, 2**62, 2**63 - 1, 2**63, 2**70):
        with pytest.raises((OSError, MemoryError, OverflowError)):
            file.grow(huge)
    assert (file.size(), file.path.stat().st_size) == (3, 12)


def test_a_file_cut_short(file):
    """A file cut short behind our back is an OSError on access, never invented zeros."""
    os.truncate(file.path, 8)
    assert [file[0], file[1]] == [1, 2]
    with pytest.raises(OSError) as info:
        file[2]
    assert not isinstance(info.value, (FileNotFoundError, FileExistsError))
    with pytest.raises(OSError):
        list(file)
    assert file.size() == 3 and file.version == 0
    os.truncate(file.path, 6)
    with pytest.raises(OSError):
        file[1]


def test_promoting_from_a_file_cut_short():
    """The move fails with an OSError, leaves everything as it was, and works when the file is whole again."""
    h = cs.Evictable(cs.CPU(0).new_like([1.0, 2.0, 3.0]), cs.FileBacked(dtype=F32))
    h.evict()
    path = h.secondary.path
    whole = path.read_bytes()
    for size in (0, 4, 11):
        os.truncate(path, size)
        with pytest.raises(OSError):
            h.promote()
        assert h.is_evicted() and h.version == 0 and h.secondary.is_owned() and not h.secondary.is_released()
    path.write_bytes(whole)
    h.promote()
    assert values(h) == [1.0, 2.0, 3.0]


def test_evicting_onto_a_file_cut_short():
    """A live secondary whose file was cut short: the move ends well, or with an OSError and no loss."""
    lower = cs.FileBacked(dtype=F32).new_like([0.0] * 3)
    h = cs.Evictable(cs.CPU(0).new_like([1.0, 2.0, 3.0]), lower)
    os.truncate(lower.path, 0)
    try:
        h.evict()
    except OSError:
        assert values(h) == [1.0, 2.0, 3.0]
    else:
        h.promote()
        assert values(h) == [1.0, 2.0, 3.0]


def test_a_file_removed_behind_our_back():
    """Releasing and dropping a carrier whose file is gone is quiet."""
    for end in (lambda c: c.release(), lambda c: None):
        c = cs.FileBacked(dtype=F32).new_like([1.0])
        c.path.unlink()
        end(c)
        del c


LIMITED = """
import errno, os, signal
import carrier_storage as cs
import tempfile
F32 = cs.DType.Float32
def refused(call, *codes):
    try:
        call()
    except OSError as error:
        assert error.errno in codes, error
    else:
        raise AssertionError("went through")
"""


def test_a_file_size_limit(session):
    """RLIMIT_FSIZE: growing, filling and evicting beyond it are OSErrors that change nothing."""
    run_child(
        LIMITED
        + """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = cs.FileBacked(dtype=F32).new_like([1.0, 2.0])
h = cs.Evictable(cs.CPU(100_000), cs.FileBacked(dtype=F32))
h[7] = 7.0
folder = f.path.parent
files = sorted(os.listdir(folder))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
refused(lambda: f.grow(100_000), errno.EFBIG, errno.ENOSPC)
assert (list(f), f.path.stat().st_size, f.version) == ([1.0, 2.0], 8, 0)
refused(lambda: f.new_like(range(100_000)), errno.EFBIG, errno.ENOSPC)
refused(lambda: f.allocate_like(100_000), errno.EFBIG, errno.ENOSPC)
refused(h.evict, errno.EFBIG, errno.ENOSPC)
assert not h.is_evicted() and h[7] == 7.0 and h.size() == 100_000 and h.primary.is_owned()
assert sorted(os.listdir(folder)) == files
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
h.evict()
h.promote()
assert h[7] == 7.0
"""
    )


def _may_mount() -> str | None:
    """Why a small file system cannot be mounted here; None when it can."""
    if shutil.which("unshare") is None:
        return "there is no unshare(1) here"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else f"no mount namespace here: {tried.stderr.strip()}"


@pytest.fixture
def small_disk(tmp_path):
    """The command that runs another with a full-able TMPDIR of 1 MiB."""
    reason = _may_mount()
    if reason:
        pytest.skip(reason)
    disk = tmp_path / "disk"
    disk.mkdir()
    return (
        "unshare",
        "-m",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=1m none {disk} && TMPDIR={disk} exec "$@"',
        "sh",
    )


FULL = (
    LIMITED
    + """
disk = tempfile.gettempdir()
def free():
    return os.statvfs(disk).f_bfree
n = 1 << 20                                  # 4 MiB
f = cs.FileBacked(dtype=F32).new_like([1.0, 2.0])
h = cs.Evictable(cs.CPU(n), cs.FileBacked(dtype=F32))
nested = cs.Evictable(cs.CPU(n), cs.Evictable(cs.CPU(1), cs.FileBacked(dtype=F32)))
h[7] = 7.0
folder = f.path.parent
files = sorted(os.listdir(folder))
room = free()
"""
)


def test_a_full_disk(small_disk):
    """Growing, filling and evicting report a full disk as OSError(ENOSPC) and change nothing: size, bytes, blocks."""
    run_child(
        FULL
        + """
for call in (lambda: f.grow(n), lambda: f.new_like(range(n)), lambda: f.allocate_like(n), h.evict,
             lambda: f.new_like(iter(range(n))), lambda: f.new_like([1.5] * n)):
    refused(call, errno.ENOSPC)
    assert (list(f), f.size(), f.path.stat().st_size, f.version) == ([1.0, 2.0], 2, 8, 0)
    assert not h.is_evicted() and h[7] == 7.0 and h.primary.is_owned() and h.secondary.is_owned()
    assert sorted(os.listdir(folder)) == files
    for _ in range(200):                     # descriptors are closed beside the caller
        if free() == room:
            break
        import time
        time.sleep(0.01)
    assert free() == room, (free(), room)
f.grow(1000)                                 # and what fits still works
f[999] = 3.0
assert f[999] == 3.0
""",
        prefix=small_disk,
    )


def test_writing_on_a_full_disk(small_disk):
    """Writing into storage that is there never hits the full disk (never SIGBUS), or says ENOSPC."""
    run_child(
        FULL
        + """
f.grow(10_000)
filler = open(disk + "/filler", "wb", buffering=0)
try:
    while True:
        filler.write(bytes(4096))
except OSError as error:
    assert error.errno == errno.ENOSPC
for i in range(0, 10_000, 7):
    try:
        f[i] = float(i)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        assert f[i] == 0.0
    else:
        assert f[i] == float(i)
refused(h.evict, errno.ENOSPC)
assert not h.is_evicted() and h[7] == 7.0
os.unlink(disk + "/filler")
filler.close()
small = cs.Evictable(cs.CPU(1000), cs.FileBacked(dtype=F32))
small.evict()
small.promote()
""",
        prefix=small_disk,
    )


def test_a_retry_after_room_was_made(small_disk):
    """... and can be retried."""
    run_child(
        FULL
        + """
h = cs.Evictable(cs.CPU(100_000), cs.FileBacked(dtype=F32))
h[9] = 9.0
hog = f.allocate_like(200_000)
refused(h.evict, errno.ENOSPC)
hog.release()
h.evict()
assert h.is_evicted() and h.secondary.path.stat().st_size == 400_000
h.promote()
assert h[9] == 9.0
""",
        prefix=small_disk,
    )


def test_errors_name_the_file():
    """OSError carries errno and the path."""
    c = cs.FileBacked("cut_short", dtype=F32)
    c.grow(2)
    os.truncate(c.path, 0)
    with pytest.raises(OSError) as info:
        c[0]
    assert info.value.errno in (None, errno.EIO, errno.ENODATA, errno.ESTALE) or info.value.errno > 0
    assert "cut_short" in str(info.value)
