# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`.npz`: a zip archive of `.npy` members, read through `zipfile`."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from carrier_storage.io.disk import DiskFile, named
from carrier_storage.io.entry import Contents, Entry, count, match_size
from carrier_storage.io.npy import read_header

ENDING = ".npy"
_END = 22  # bytes of the last record, after which the comment follows
_LOCAL_HEADER = 30  # bytes before the name and the extra field, whose lengths stand at its end
_MOST_DESCRIPTOR = 24  # bytes that may follow a member which was written to a stream
_DEFLATE = 1032  # no byte of deflated data unpacks to more


class Member:
    """A member of an archive, whose stream is kept open: reading forward costs no rewinding."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, offset: int, label: str) -> None:
        self._archive = archive
        self._info = info
        self._offset = offset
        self._label = label
        self._stream: IO[bytes] | None = None

    def read_into(self, position: int, view: memoryview) -> None:
        done, count = 0, len(view)
        with unpacking(self._label):
            if self._stream is None:
                self._stream = self._archive.open(self._info)
            if self._stream.tell() != self._offset + position:
                self._stream.seek(self._offset + position)
            while done < count and (piece := self._stream.read(count - done)):
                view[done : done + len(piece)] = piece
                done += len(piece)
            if self._offset + position + count == self._info.file_size:
                self._stream.read(1)  # at the end the checksum is compared
                self._stream.close()
                self._stream = None
        if done < count:
            raise ValueError(f"{self._label}: is truncated")


@contextmanager
def unpacking(label: str) -> Iterator[None]:
    """What `zipfile` says of a damaged member, as a ValueError that names it."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{label}: cannot be unpacked: {error}") from None


def open_npz(file: DiskFile) -> Contents:
    """Its members by name, in their order in the archive."""
    try:
        with named(file.path):
            archive = zipfile.ZipFile(file.stream)  # which its entries read from
    except OSError:
        raise
    except Exception as error:  # struct.error, OverflowError and more, of a directory that is damaged
        raise ValueError(f"{file.path}: not an .npz archive, or truncated: {error}") from None
    found: dict[str, partial[Entry]] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(ENDING)
        label = f"{file.path}: {name!r}"
        if info.filename == name:
            raise ValueError(f"{label}: not an array (a member without the ending {ENDING})")
        if name in found:
            raise ValueError(f"{label}: the name occurs twice")
        found[name] = partial(_entry, archive, info, name, label)
    _check_cover(file, archive)
    return found


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, label: str) -> Entry:
    _check_sizes(info, label)
    with unpacking(label), archive.open(info) as stream:
        header = read_header(stream, info.file_size, label)
    size = count(label, header.dtype, header.shape)
    match_size(label, header.dtype, size, info.file_size - header.end)
    source = Member(archive, info, header.end, label)
    return Entry(name, label, header.dtype, header.shape, header.fortran, size, source)


def _check_sizes(info: zipfile.ZipInfo, label: str) -> None:
    """Against what the bytes that are there can unpack to: memory is taken for no more."""
    if info.flag_bits & 1:
        raise ValueError(f"{label}: is encrypted")
    if info.compress_type == zipfile.ZIP_STORED:
        most = info.compress_size
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        most = info.compress_size * _DEFLATE
    else:
        raise ValueError(
            f"{label}: is packed by method {info.compress_type}; .npz files are stored or deflated"
        )
    if info.file_size > most:
        raise ValueError(
            f"{label}: is truncated, or lies about its size: {info.compress_size} bytes cannot unpack to"
            f" {info.file_size}"
        )


def _check_cover(file: DiskFile, archive: zipfile.ZipFile) -> None:
    """Members lie one after the other, up to the directory: no two share bytes, and no bytes are nobody's."""
    if not file.read(file.size - len(archive.comment) - _END, 4).startswith(b"PK\5\6"):
        raise ValueError(f"{file.path}: has bytes after the archive, which belong to no member")
    end, slack = 0, 0
    for info in sorted(archive.infolist(), key=lambda i: i.header_offset):
        _check_gap(
            file.path, info.header_offset - end, slack, f"{info.filename!r} begins", info.header_offset
        )
        local = file.read(info.header_offset, _LOCAL_HEADER)
        names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        end = info.header_offset + _LOCAL_HEADER + names + info.compress_size
        slack = _MOST_DESCRIPTOR if info.flag_bits & 8 else 0
    _check_gap(file.path, archive.start_dir - end, slack, "the directory begins", archive.start_dir)


def _check_gap(path: str, gap: int, slack: int, what: str, where: int) -> None:
    if gap < 0:
        raise ValueError(
            f"{path}: overlapping members: {what} at byte {where}, {-gap} before the last one ends"
        )
    if gap > slack:
        raise ValueError(f"{path}: {gap} bytes before byte {where}, where {what}, belong to no member")
