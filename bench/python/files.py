# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values between memory and files, beside bare loops and what other libraries do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import carrier_storage as cs
import numpy as np

import machine
from dtypes import FLOAT, INT, Peers
from harness import Contender, Options, Row, timed
from scratch import Folder, drop_from_cache, remove

KIB, MIB = 1 << 10, 1 << 20
LARGE = {"rounds": 5, "warm": False}  # rows that take a while
SMALL = (4 * KIB, 64 * KIB, MIB, 4 * MIB)


def _aligned(size: int) -> np.ndarray:
    """Room for floats as direct I/O wants it."""
    room = np.empty(size + 4096, np.uint8)
    skip = -room.ctypes.data % 4096
    return room[skip : skip + size].view(np.float32)


class Bench:
    """The payload of some rows, and the scratch files of their rivals. ``with`` gives all of it back."""

    def __init__(self, size: int, folder: Folder) -> None:
        self.size, self.folder = size, folder
        self.values = _aligned(size)
        self.values[:] = np.random.default_rng(0).random(size // 4, dtype=np.float32)
        self.said = f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"

    def settle(self) -> None:
        """Lets the removal of the last contender's file end, which no one is to pay for."""
        if self.size >= 16 * MIB:
            time.sleep(self.size / (1 << 30) * 0.25)

    def path(self) -> str:
        self.settle()
        return self.folder.fresh()

    def promoted(self) -> cs.Evictable:
        self.settle()
        return cs.Evictable(cs.CPU(0).new_like(self.values), cs.FileBacked(dtype=FLOAT.dtype))

    def evicted(self, *, cold: bool = False) -> cs.Evictable:
        made = self.promoted()
        made.evict()
        if cold:
            drop_from_cache(made.secondary.path)
        return made

    def file(self, *, cold: bool = False) -> str:
        path = self.path()
        self.values.tofile(path)
        if cold:
            drop_from_cache(path)
        return path

    def writes(self, run: Callable[[str], object], setup: Callable[[], str] | None = None) -> Contender:
        """Writes the path that ``setup`` gives, a fresh one by default; the file goes, untimed."""
        return timed(run, setup or self.path, keep=True, after=_gone)

    def fresh(self) -> np.ndarray:
        """The payload in fresh memory, where a carrier's is too: what it took, the page cache has to find elsewhere."""
        made = _aligned(self.size)
        made[:] = self.values
        return made

    def evicts(
        self, run: Callable[[str, np.ndarray], object], setup: Callable[[], str] | None = None
    ) -> Contender:
        """Writes a fresh payload to a path; the payload's memory goes as part of it, the file untimed."""

        def both() -> tuple[str, list[np.ndarray]]:
            path = (setup or self.path)()
            return path, [self.fresh()]

        return timed(
            lambda p: run(p[0], p[1].pop()), both, keep=True, after=lambda p, made: _gone(p[0], made)
        )

    def bare_write(self, *, direct: bool, create: bool = True) -> Contender | None:
        def run(path: str, values: np.ndarray) -> None:
            machine.checked(
                machine.call("write_file", path, values, self.size, direct, create), _direct(direct)
            )

        return machine.control(self.evicts(run, None if create else lambda: self.file(cold=True)))

    def bare_read(self, *, direct: bool) -> Contender | None:
        def run(path: str) -> int:
            made = machine.call("promote", path, self.size, direct)
            if not made:
                machine.checked(22, _direct(direct))
            return made or 0

        def after(path: str, made: int | None) -> None:
            if made:
                machine.call("give_back", made, self.size, direct)
            remove(path)

        return machine.control(timed(run, lambda: self.file(cold=direct), keep=True, after=after))


def _direct(direct: bool) -> str:
    return "no direct I/O in this folder (TMPDIR chooses another)" if direct else "writing"


def _gone(path: str, _: object) -> None:
    remove(path)


def _evict(b: Bench) -> Iterator[Row]:
    torch = machine.torch()

    def memmap(path: str, values: np.ndarray) -> None:
        mapped = np.memmap(path, np.float32, "w+", shape=values.shape)
        mapped[:] = values
        mapped.flush()

    def sync_and_drop(path: str, values: np.ndarray) -> None:
        values.tofile(path)
        drop_from_cache(path)

    def save(path: str, values: np.ndarray) -> None:
        torch.save(torch.from_numpy(values), path)

    bare = "bare direct|bare buffered"
    yield Row(
        f"evict {b.said}",
        timed(lambda e: e.evict(), b.promoted),
        {
            "bare direct": b.bare_write(direct=True),
            "bare buffered": b.bare_write(direct=False),
            "tofile+fdatasync+drop": b.evicts(sync_and_drop),
            "memmap+flush": b.evicts(memmap),
            "torch.save": torch and b.evicts(save),
        },
        {bare: 1 / 0.9, "tofile+fdatasync+drop": 1 / 1.4, "memmap+flush": 0.5, "torch.save": 1 / 1.4},
        control=bare,
        **LARGE,
    )


def _evict_again(b: Bench) -> Iterator[Row]:
    def again() -> cs.Evictable:
        made = b.evicted(cold=True)
        made.promote()
        return made

    def over_a_file() -> cs.Evictable:
        b.settle()
        file = cs.FileBacked(dtype=FLOAT.dtype).new_like(b.values)
        drop_from_cache(file.path)
        return cs.Evictable(cs.CPU(0).new_like(b.values), file)

    for said, setup in (("again", again), ("into a file that has the size", over_a_file)):
        yield Row(
            f"evict {b.said} {said}",
            timed(lambda e: e.evict(), setup),
            {"bare overwrite": b.bare_write(direct=True, create=False)},
            {"bare overwrite": 1 / 0.8},
            control="bare overwrite",
            **LARGE,
        )


def _promote(b: Bench) -> Iterator[Row]:
    torch = machine.torch()

    def saved() -> str:
        path = b.path()
        torch.save(torch.from_numpy(b.values.copy()), path)
        drop_from_cache(path)
        return path

    def cold() -> str:
        return b.file(cold=True)

    yield Row(
        f"promote {b.said}, cold",
        timed(lambda e: e.promote(), lambda: b.evicted(cold=True)),
        {
            "bare direct": b.bare_read(direct=True),
            "np.fromfile": timed(lambda p: np.fromfile(p, np.float32), cold, keep=True, after=_gone),
            "torch.load": torch and timed(torch.load, saved, keep=True, after=_gone),
        },
        {"bare direct": 1 / 0.9, "np.fromfile": 1 / 1.1, "torch.load": 1 / 1.1},
        control="bare direct",
        **LARGE,
    )


def _small(b: Bench) -> Iterator[Row]:
    evict, promote = timed(lambda e: e.evict(), b.promoted), timed(lambda e: e.promote(), b.evicted)
    for verb, ours, name, bare, limit in (
        ("evict", evict, "open+pwrite+close", b.bare_write(direct=False), 1.2),
        ("promote", promote, "calloc+open+pread+close", b.bare_read(direct=False), 1.3),
    ):
        yield Row(f"{verb} {b.said}", ours, {name: bare}, {name: limit}, control=name, rounds=25)


def _into_files(b: Bench) -> Iterator[Row]:
    """From buffers into FileBacked, beside writing the bytes that come out of them."""
    pairs: tuple[tuple[str, Peers], ...] = (("f4", FLOAT), ("f8", FLOAT), ("i8", INT))
    for code, into in pairs:
        values = (b.values * 1000).astype(code)
        result, prototype = values.astype(into.numpy), cs.FileBacked(dtype=into.dtype)

        def ours(_: object, make=prototype.new_like, values=values) -> cs.Carrier:
            return make(values)

        def bare(path: str, result=result) -> None:
            machine.checked(machine.call("write_file", path, result, b.size, False, True), "writing")

        yield Row(
            f"FileBacked of {into.name} from a buffer of {values.dtype.name}, {b.said}",
            timed(ours, b.settle, keep=True),
            {"tofile": b.writes(result.tofile), "bare buffered": machine.control(b.writes(bare))},
            {"tofile": 1.1},
            control="bare buffered",
            **LARGE,
        )


def _release(b: Bench) -> Iterator[Row]:
    """No file is removed on the path of the call."""

    def file() -> cs.Carrier:
        b.settle()
        return cs.FileBacked(dtype=FLOAT.dtype).new_like(b.values)

    for said, setup in (("FileBacked", file), ("evicted Evictable", b.evicted)):
        yield Row(
            f"release {said} of {b.said}",
            timed(lambda c: c.release(), setup),
            {"unlink": b.writes(os.unlink, b.file)},
            at_most=5e-3,
            rounds=3,
            warm=False,
        )


def _removal(b: Bench) -> Iterator[Row]:
    """Nor on a promotion's."""

    def held() -> tuple[cs.Evictable, int]:
        made = b.evicted()
        return made, os.open(made.secondary.path, os.O_RDONLY)

    yield Row(
        f"promote {b.said}, warm: its file's removal",
        timed(lambda e: e.promote(), b.evicted),
        {"file held open": timed(lambda p: p[0].promote(), held, after=lambda p, _: os.close(p[1]))},
        {"file held open": 1.1},
        **LARGE,
    )


def rows(options: Options) -> Iterator[Row]:
    largest = options.mib * MIB
    with Folder() as folder:
        for size in SMALL[: options.pick(len(SMALL), 1)]:
            yield from _small(Bench(size, folder))
        for size in sorted({min(64 * MIB, largest), largest}):
            yield from _evict(Bench(size, folder))
            yield from _promote(Bench(size, folder))
        bench = Bench(largest, folder)
        yield from _evict_again(bench)
        yield from _into_files(bench)
        yield from _removal(bench)
        yield from _release(Bench(options.pick(4, 1) * largest, folder))
