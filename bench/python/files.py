# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Moving values between memory and files, beside bare loops and what other libraries do."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

from harness import Contender, Row

F32 = cs.DType.Float32
CHUNK = 4 << 20


class Folder:
    """Scratch files beside the session directory, on the same file system."""

    def __init__(self) -> None:
        self.root = tempfile.mkdtemp(prefix="carrier-bench-")
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return os.path.join(self.root, f"f{self.count}")

    def close(self) -> None:
        for name in os.listdir(self.root):
            os.unlink(os.path.join(self.root, name))
        os.rmdir(self.root)


def _direct(path: str, size: int, memory: memoryview, write: bool) -> None:
    """The bare loop: O_DIRECT, four threads, 4 MiB each."""
    flags = os.O_DIRECT | ((os.O_RDWR | os.O_CREAT) if write else os.O_RDONLY)
    fd = os.open(path, flags, 0o600)

    def work(k: int) -> None:
        for at in range(k * CHUNK, size, 4 * CHUNK):
            part = memory[at : at + CHUNK]
            if write:
                os.pwrite(fd, part, at)
            else:
                os.preadv(fd, [part], at)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    os.close(fd)


def _buffered(path: str, size: int, memory: memoryview) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for at in range(0, size, CHUNK):
        os.pwrite(fd, memory[at : at + CHUNK], at)
    os.close(fd)


def _drop(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def rows(mib: int = 256) -> Iterator[Row]:
    size = mib << 20
    values = np.random.default_rng(0).random(size // 4, dtype=np.float32)
    page = mmap.mmap(-1, size)
    page.write(values.tobytes())
    memory = memoryview(page)
    folder = Folder()
    proto = cs.CPU(0)

    def promoted() -> cs.Evictable:
        return cs.Evictable(proto.new_like(values), cs.FileBacked(dtype=F32))

    def scratch() -> str:
        for name in os.listdir(folder.root):
            os.unlink(os.path.join(folder.root, name))
        return folder.fresh()

    def tofile_sync_drop(path: str) -> None:
        values.tofile(path)
        _drop(path)

    def memmap_flush(path: str) -> None:
        m = np.memmap(path, np.float32, "w+", shape=values.shape)
        m[:] = values
        m.flush()

    yield Row(
        f"evict {mib} MiB",
        Contender(lambda e: e.evict(), promoted),
        {
            "bare direct": Contender(lambda p: _direct(p, size, memory, True), scratch),
            "bare buffered": Contender(lambda p: _buffered(p, size, memory), scratch),
            "tofile+fdatasync+drop": Contender(tofile_sync_drop, scratch),
            "memmap+flush": Contender(memmap_flush, scratch),
        },
        {"tofile+fdatasync+drop": 1 / 1.4, "memmap+flush": 0.5},
        rounds=5,
    )

    def cold() -> cs.Evictable:
        e = promoted()
        e.evict()
        _drop(str(e.secondary.path))
        return e

    def cold_file() -> str:
        path = scratch()
        values.tofile(path)
        _drop(path)
        return path

    def direct_into_fresh(path: str) -> None:
        fresh = mmap.mmap(-1, size)
        fresh.madvise(mmap.MADV_HUGEPAGE)
        _direct(path, size, memoryview(fresh), False)

    yield Row(
        f"promote {mib} MiB, cold",
        Contender(lambda e: e.promote(), cold),
        {
            "bare direct": Contender(direct_into_fresh, cold_file),
            "np.fromfile": Contender(lambda p: np.fromfile(p, np.float32), cold_file),
        },
        {"bare direct": 1 / 0.9, "np.fromfile": 1 / 1.1},
        rounds=5,
    )
    small = values[: 1 << 20]

    def small_promoted() -> cs.Evictable:
        return cs.Evictable(proto.new_like(small), cs.FileBacked(dtype=F32))

    def small_evicted() -> cs.Evictable:
        e = small_promoted()
        e.evict()
        return e

    def plain_write(path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.pwrite(fd, memory[: 4 << 20], 0)
        os.close(fd)

    def plain_file() -> str:
        path = scratch()
        plain_write(path)
        return path

    def plain_read(path: str) -> None:
        fresh = np.zeros(1 << 20, np.float32)
        fd = os.open(path, os.O_RDONLY)
        os.preadv(fd, [memoryview(fresh).cast("B")], 0)
        os.close(fd)

    yield Row(
        "evict 4 MiB",
        Contender(lambda e: e.evict(), small_promoted),
        {"open+pwrite+close": Contender(plain_write, scratch)},
        {"open+pwrite+close": 1.2},
        rounds=15,
    )
    yield Row(
        "promote 4 MiB",
        Contender(lambda e: e.promote(), small_evicted),
        {"zeros+open+pread+close": Contender(plain_read, plain_file)},
        {"zeros+open+pread+close": 1.3},
        rounds=15,
    )

    def big_file() -> cs.Carrier:
        return cs.FileBacked(dtype=F32).new_like(values)

    yield Row(f"release a file of {mib} MiB", Contender(lambda c: c.release(), big_file), {}, rounds=5)
    folder.close()
