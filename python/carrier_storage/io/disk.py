# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""A file that is read by position, and what it is for it to be one."""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self


def text_of(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The path as messages give it. TypeError."""
    return os.fsdecode(path)


def suffix_of(path: str) -> str:
    """The ending that tells the format, in lower case."""
    return os.path.splitext(path)[1].lower()  # noqa: PTH122 - a string comes in, and messages give it as it is


@contextmanager
def named(path: str) -> Iterator[None]:
    """An OSError that comes without a file gets this one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


class Source(Protocol):
    """The values of one array, as bytes."""

    def read_into(self, position: int, view: memoryview) -> None:
        """Fills `view` with the bytes from `position` on. ValueError when they are not there, OSError."""
        ...


class DiskFile:
    """A regular file. Read by the system call: a mapping of a file that is cut short would end the process.

    Once closed it opens itself for each reading, and refuses to when it is not the same file any more.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file, now = self._open()
        self._identity = now
        self.size = now[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def stream(self) -> io.BufferedReader:
        """The open file."""
        return self._file

    def read(self, position: int, count: int) -> bytes:
        """Bytes of the open file, fewer at its end."""
        with named(self.path):
            self._file.seek(position)
            return self._file.read(count)

    def read_into(self, position: int, view: memoryview, label: str) -> None:
        """Fills `view`; ValueError when the file has become shorter."""
        if not self._file.closed:
            self._fill(self._file, position, view, label)
            return
        file, now = self._open()
        with file:
            if now != self._identity:
                raise ValueError(f"{label}: the file has changed while it was read")
            self._fill(file, position, view, label)

    def _open(self) -> tuple[io.BufferedReader, tuple[int, ...]]:
        # Opening a pipe would wait for its writer.
        opened = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(opened)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"{self.path}: not a regular file")
            return os.fdopen(opened, "rb"), (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        except BaseException:
            os.close(opened)
            raise

    def _fill(self, file: io.BufferedReader, position: int, view: memoryview, label: str) -> None:
        done = 0
        with named(self.path):
            file.seek(position)
            while done < len(view) and (got := file.readinto(view[done:])):
                done += got
        if done < len(view):
            raise ValueError(f"{label}: was cut short while it was read")


class Range:
    """Bytes of a file from an offset on."""

    def __init__(self, file: DiskFile, offset: int, label: str) -> None:
        self.offset = offset
        self._file = file
        self._label = label

    def read_into(self, position: int, view: memoryview) -> None:
        self._file.read_into(self.offset + position, view, self._label)
