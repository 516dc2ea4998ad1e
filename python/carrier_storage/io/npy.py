# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`.npy`: NumPy's own header, read by NumPy from bytes that are known to be there."""

from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from carrier_storage.io.disk import DiskFile, Range
from carrier_storage.io.entry import Contents, Entry, count, match_size

_MOST_HEADER = 10_000  # bytes that NumPy parses of a file that it does not trust


class Header(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    end: int  # where the values begin


def read_header(stream: IO[bytes], there: int, label: str) -> Header:
    """What stands at the head of `stream`, which has `there` bytes. ValueError; reads no more than the header."""
    try:
        text = _header_bytes(stream, there)
    except ValueError as error:
        raise _damaged(label, error) from None
    parse = npy_format.read_array_header_1_0 if text[6] == 1 else npy_format.read_array_header_2_0
    whole = BytesIO(text)
    whole.seek(npy_format.MAGIC_LEN)
    try:
        shape, fortran, dtype = parse(whole, max_header_size=_MOST_HEADER)
    except Exception as error:  # whatever parsers of Python expressions make of hostile text
        raise _damaged(label, error) from None
    return Header(dtype, shape, fortran, len(text))


def _damaged(label: str, error: Exception) -> ValueError:
    reason = str(error).partition("\n")[0][:200] or type(error).__name__
    return ValueError(f"{label}: not a .npy file, or its header is damaged: {reason}")


def _header_bytes(stream: IO[bytes], there: int) -> bytes:
    head = stream.read(npy_format.MAGIC_LEN)
    major, minor = npy_format.read_magic(BytesIO(head))
    if major not in (1, 2, 3) or minor != 0:
        raise ValueError(f"version ({major}, {minor}) of the format is unknown")
    # 3.0 differs from 2.0 in the names of fields alone, and no dtype with fields is taken.
    width = 2 if major == 1 else 4
    length = stream.read(width)
    told = int.from_bytes(length, "little")
    end = len(head) + width + told
    if end > there:
        raise ValueError(f"the header is to end at byte {end} of {there}")
    if told > _MOST_HEADER:
        raise ValueError(f"a header of {told} bytes; at most {_MOST_HEADER} are read")
    return head + length + stream.read(told)


def write_header(stream: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The header of an array in C order."""
    header = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(stream, header)


def open_npy(file: DiskFile) -> Contents:
    """One entry, under the file's stem."""
    name = Path(file.path).stem

    def entry() -> Entry:
        file.stream.seek(0)
        header = read_header(file.stream, file.size, file.path)
        size = count(file.path, header.dtype, header.shape)
        match_size(file.path, header.dtype, size, file.size - header.end)
        source = Range(file, header.end, file.path)
        return Entry(name, file.path, header.dtype, header.shape, header.fortran, size, source)

    return {name: entry}
