# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""NumPy's files: `.npy` and `.npz`. Headers are checked against the bytes that are there before any value is read."""

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy_format

from carrier_storage.cli.entries import Entry, Values, check
from carrier_storage.cli.errors import BadInputError


class Bytes:
    """Part of a file. Read by the system call: a mapping of a file that is cut short would end the process."""

    def __init__(self, path: Path, label: str, offset: int) -> None:
        self._path = path
        self._label = label
        self._offset = offset

    def read(self, position: int, count: int) -> bytearray:
        buffer = bytearray(count)
        done = 0
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._offset + position)
            while done < count and (got := file.readinto(memoryview(buffer)[done:])):
                done += got
        if done < count:
            raise BadInputError(f"{self._label}: was cut short while it was read")
        return buffer


class Member:
    """A member of a zip archive, whose stream is kept open: reading forward costs no rewinding."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str, offset: int) -> None:
        self._archive = archive
        self._info = info
        self._label = label
        self._offset = offset
        self._stream: IO[bytes] | None = None

    def read(self, position: int, count: int) -> bytearray:
        try:
            if self._stream is None:
                self._stream = self._archive.open(self._info)
            if self._stream.tell() != self._offset + position:
                self._stream.seek(self._offset + position)
            buffer = bytearray()
            while len(buffer) < count and (piece := self._stream.read(count - len(buffer))):
                buffer += piece
            if self._offset + position + count == self._info.file_size:
                self._stream.read(1)  # at the end the checksum is compared
                self._stream.close()
                self._stream = None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise BadInputError(f"{self._label}: cannot be unpacked: {error}") from None
        if len(buffer) < count:
            raise BadInputError(f"{self._label}: is truncated")
        return buffer


def fetcher(source: Bytes | Member, dtype: np.dtype):
    def fetch(start: int, stop: int) -> Values:
        return np.frombuffer(
            source.read(start * dtype.itemsize, (stop - start) * dtype.itemsize), dtype=dtype
        )

    return fetch


def read_header(stream: IO[bytes], label: str) -> tuple[np.dtype, tuple[int, ...], int]:
    """The dtype, the shape and where the values begin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers written by Python 2
            version = npy_format.read_magic(stream)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"version {version} of the format is unknown")
            # 3.0 differs from 2.0 in the names of fields alone, and no dtype with fields is taken.
            read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
            shape, _, dtype = read(stream)
    except (ValueError, EOFError, TypeError, SyntaxError, RecursionError, MemoryError, UnicodeError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise BadInputError(f"{label}: not a .npy file, or its header is damaged: {reason}") from None
    return dtype, shape, stream.tell()


def match_size(label: str, dtype: np.dtype, size: int, there: int) -> None:
    """The header has to account for every byte."""
    told = size * dtype.itemsize
    if told > there:
        raise BadInputError(
            f"{label}: is truncated: the header tells of {told} bytes of values, {there} are there"
        )
    if told < there:
        raise BadInputError(f"{label}: has {there - told} bytes after the {told} that its header tells of")


def open_npy(path: Path, file: str) -> list[Entry]:
    with path.open("rb") as stream:
        dtype, shape, offset = read_header(stream, file)
        there = os.fstat(stream.fileno()).st_size - offset
    size = check(file, "", dtype, shape)
    match_size(file, dtype, size, there)
    return [Entry(file, "", dtype, size, fetcher(Bytes(path, file, offset), dtype))]


def open_npz(path: Path, file: str) -> list[Entry]:
    try:
        archive = zipfile.ZipFile(path)  # open until the end: its entries read from it
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
        raise BadInputError(f"{file}: not an .npz archive, or truncated: {error}") from None
    entries = list(_members(archive, file))
    if not entries:
        raise BadInputError(f"{file}: holds no arrays")
    return entries


def _members(archive: zipfile.ZipFile, file: str) -> Iterator[Entry]:
    seen = set()
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        label = f"{file}: {name!r}"
        if name in seen:
            raise BadInputError(f"{label}: the name occurs twice")
        seen.add(name)
        if info.filename == name:
            raise BadInputError(f"{label}: not an array (a member without the ending .npy)")
        if info.flag_bits & 1:
            raise BadInputError(f"{label}: is encrypted")
        try:
            with archive.open(info) as stream:
                dtype, shape, offset = read_header(stream, label)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError) as error:
            raise BadInputError(f"{label}: cannot be unpacked: {error}") from None
        size = check(file, name, dtype, shape)
        match_size(label, dtype, size, info.file_size - offset)
        yield Entry(file, name, dtype, size, fetcher(Member(archive, info, label, offset), dtype))
