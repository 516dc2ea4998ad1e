# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`save`: carriers and Tensors into a file."""

import os
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from carrier_storage import Carrier, Tensor
from carrier_storage.io.disk import suffix_of, text_of
from carrier_storage.io.gather import Outgoing
from carrier_storage.io.npy import write_header
from carrier_storage.io.npz import ENDING
from carrier_storage.io.replace import Whole, replacing
from carrier_storage.io.tensors import METADATA, check_header, header_of, library

_LONGEST_MEMBER = 65535  # bytes of a name in a zip archive


class SupportsWrite(Protocol):
    def write(self, data: Any, /) -> object: ...


def save(path: str | os.PathLike[str], tensors: Mapping[str, Tensor | Carrier]) -> None:
    """Writes Tensors and carriers into a `.npy`, `.npz` or `.safetensors` file, by name.

    The file appears, or is replaced, when everything is written and has reached the disk; at any error it stays as it
    was. A replaced file keeps its permissions; where `path` is a symbolic link, what it leads to is replaced.

    A Tensor is saved as it is seen: the leaf modes of its layout are the axes of the array. A carrier is one axis.
    Values are read in pieces from where they lie: an evicted hierarchy's stay there. `.npy` takes exactly one array,
    and does not keep its name. `load` gives everything back.

    Raises TypeError (arguments), ValueError (unknown ending, a name that the format cannot hold, nothing or several
    for `.npy`, no elements, several subtensors, dtypes other than Float32, Int32, Bool), RuntimeError (a released
    carrier; one that is written meanwhile), OSError, ImportError (`.safetensors` without that library), and what a
    custom carrier's hooks raise.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
    >>> from carrier_storage.io import save
    >>> c = CPU(0).new_like(range(6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "w.npy", {"w": Tensor(c, 0, Layout(Shape(2, 3), Stride(3, 1)))})
    ...     np.load(Path(folder) / "w.npy").tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    text = text_of(path)
    if (form := _FORMATS.get(suffix_of(text))) is None:
        raise ValueError(f"{text}: unknown kind of file; {', '.join(_FORMATS)} are written")
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors must map names to Tensors and carriers, not {type(tensors).__name__}")
    outgoing = []
    for name, what in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"{text}: a name must be a str, not {type(name).__name__}")
        outgoing.append(Outgoing(name, f"{text}: {name!r}", what))
    form.check(text, outgoing)
    with replacing(text) as file:
        form.write(file, outgoing)
        for array in outgoing:
            array.require_unchanged()
        if form.judge is not None:
            form.judge(text, file.fileno())


def _check_npy(path: str, arrays: list[Outgoing]) -> None:
    if len(arrays) != 1:
        raise ValueError(f"{path}: a .npy file holds one array, not {len(arrays)}")


def _write_npy(file: SupportsWrite, arrays: list[Outgoing]) -> None:
    (array,) = arrays
    write_header(file, array.dtype, array.shape)
    for chunk in array.chunks():
        file.write(chunk)


def _check_npz(path: str, arrays: list[Outgoing]) -> None:
    for array in arrays:
        if "\0" in array.name or len(_utf8(path, array.name + ENDING)) > _LONGEST_MEMBER:
            raise ValueError(f"{path}: {array.name[:99]!r} cannot be a name in an archive (NUL, or too long)")


def _write_npz(file: Whole, arrays: list[Outgoing]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for array in arrays:
            with archive.open(zipfile.ZipInfo(array.name + ENDING), "w", force_zip64=True) as member:
                _write_npy(member, [array])


def _check_safetensors(path: str, arrays: list[Outgoing]) -> None:
    library(path)
    for array in arrays:
        _utf8(path, array.name)
        if array.name == METADATA:
            raise ValueError(f"{path}: {METADATA!r} cannot be a name: it is where the format keeps its notes")


def _write_safetensors(file: Whole, arrays: list[Outgoing]) -> None:
    arrays = sorted(arrays, key=lambda a: (-a.dtype.itemsize, a.name))  # so that each one is aligned
    file.write(header_of([(a.name, a.dtype, a.shape) for a in arrays]))
    for array in arrays:
        for chunk in array.chunks():
            file.write(np.asarray(chunk).astype(array.dtype.newbyteorder("<"), copy=False))


def _utf8(path: str, name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{path}: {name!r} cannot be a name: it is no Unicode text (a lone surrogate)"
        ) from None


class _Format(NamedTuple):
    check: Callable[[str, list[Outgoing]], None]  # the names, and how many there are
    write: Callable[[Any, list[Outgoing]], None]
    judge: Callable[[str, int], None] | None = None  # of the open file, once it is written


_FORMATS = {
    ".npy": _Format(_check_npy, _write_npy),
    ".npz": _Format(_check_npz, _write_npz),
    ".safetensors": _Format(_check_safetensors, _write_safetensors, check_header),
}
