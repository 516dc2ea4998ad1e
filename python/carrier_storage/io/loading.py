# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`load`: a file's arrays into carriers."""

import os
from collections.abc import Callable, Iterable
from typing import TypeAlias

from carrier_storage import CPU, Carrier, Layout, Shape, Stride, Tensor
from carrier_storage.io.convert import CONVERTED, converted, dtype_of, needs_conversion
from carrier_storage.io.disk import DiskFile, suffix_of, text_of
from carrier_storage.io.entry import Contents, Entry
from carrier_storage.io.kinds import Maker, make, maker_of, released_on_error
from carrier_storage.io.mapped import map_entries
from carrier_storage.io.npy import open_npy
from carrier_storage.io.npz import open_npz
from carrier_storage.io.tensors import open_safetensors

Progress: TypeAlias = Callable[[int, int], object]

READERS: dict[str, Callable[[DiskFile], Contents]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
}
CHUNK = 1 << 20  # elements that are read at a time


def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    kind: type[Carrier] | Maker = CPU,
    mmap: bool = False,
    convert: bool = False,
    progress: Progress | None = None,
) -> dict[str, Tensor]:
    """The arrays of a `.npy`, `.npz` or `.safetensors` file as Tensors, by name, in the file's order.

    A `.npy` file has one, under the file's stem. Each Tensor has a fresh carrier of its own, and the array's shape: its
    axis k is the k-th mode of the layout; 0-d is `Shape()`. With `names` only those are looked at.

    `kind` is a carrier class (Evictable is CPU over FileBacked) or a callable `(size, dtype) -> Carrier`. Values come
    in pieces: a FileBacked never has its payload in memory. `progress(done, total)` counts bytes of the file.

    Float32, int32 and bool load as they are, in any byte order; other integers and floats up to 64 bits become Int32
    and Float32 with `convert=True`. With `mmap=True` the carriers are read-only CPU carriers over the mapped file,
    which must not be cut short while they live.

    Raises ValueError that names file and entry (damaged or hostile files, arrays without elements, dtypes that do not
    load, names that are not there or occur twice, bytes that belong to no entry, what cannot be mapped or the kind
    cannot hold), OverflowError (an integer that does not fit), OSError, MemoryError, TypeError (arguments),
    ImportError (`.safetensors` without that library), and what `kind` and `progress` raise. A load that fails
    releases what was made for it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import carrier_storage as cs
    >>> from carrier_storage.io import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "w.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    ...     w = load(Path(folder) / "w.npy", kind=cs.Evictable)["w"]
    >>> w.layout.shape, w[1, 2]
    (Shape(2, 3), 5)
    """
    text = text_of(path)
    wanted = _names(names)
    for option, value in (("mmap", mmap), ("convert", convert)):
        if not isinstance(value, bool):
            raise TypeError(f"{option} must be a bool, not {type(value).__name__}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, not {type(progress).__name__}")
    maker = maker_of(kind)
    if mmap and kind is not CPU:
        raise ValueError(f"{text}: mmap=True gives CPU carriers; leave kind out")
    with DiskFile(text) as file:
        entries = [entry() for entry in _select(file.path, contents(file), wanted)]
        if not convert:
            for entry in entries:
                if needs_conversion(entry.dtype):
                    raise ValueError(f"{entry.label}: dtype {entry.dtype} needs convert=True; {CONVERTED}")
        report = _Report(progress, sum(entry.nbytes for entry in entries))
        carriers = map_entries(file, entries, report) if mmap else _fill(entries, maker, report)
    return {entry.name: _tensor(c, entry) for entry, c in zip(entries, carriers, strict=True)}


def contents(file: DiskFile) -> Contents:
    """What an open file holds, by its ending. ValueError."""
    reader = READERS.get(suffix_of(file.path))
    if reader is None:
        raise ValueError(f"{file.path}: unknown kind of file; {', '.join(READERS)} are read")
    return reader(file)


class _Report:
    """Counts bytes for `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._done = 0
        self._total = total

    def __call__(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._progress(self._done, self._total)


def _names(names: Iterable[str] | None) -> dict[str, None] | None:
    if names is None:
        return None
    if isinstance(names, (str, bytes)):
        raise TypeError(f"names must be several names, like [{names!r}]")
    found = dict.fromkeys(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"a name must be a str, not {type(name).__name__}")
    return found


def _select(path: str, found: Contents, wanted: dict[str, None] | None) -> list[Callable[[], Entry]]:
    if wanted is None:
        return list(found.values())
    for name in wanted:
        if name not in found:
            known = ", ".join(map(repr, list(found)[:10])) + (", ..." if len(found) > 10 else "")
            raise ValueError(f"{path}: has no entry {name!r}; it has {known or 'none'}")
    return [entry for name, entry in found.items() if name in wanted]


def _fill(entries: list[Entry], maker: Maker, report: _Report) -> list[Carrier]:
    made: list[Carrier] = []
    with released_on_error(made):
        for entry in entries:  # all of them first: what cannot be had is known before a value is read
            made.append(make(maker, entry.size, dtype_of(entry.dtype), entry.label, made))
        for entry, carrier in zip(entries, made, strict=True):
            for start in range(0, entry.size, CHUNK):
                stop = min(start + CHUNK, entry.size)
                carrier.write(start, converted(entry.fetch(start, stop), start, entry.label))
                report((stop - start) * entry.dtype.itemsize)
    return made


def _tensor(carrier: Carrier, entry: Entry) -> Tensor:
    shape = entry.shape
    steps, step = [0] * len(shape), 1
    for axis in range(len(shape)) if entry.fortran else reversed(range(len(shape))):
        steps[axis] = step
        step *= shape[axis]
    return Tensor(carrier, 0, Layout(Shape(*shape), Stride(*steps)))
