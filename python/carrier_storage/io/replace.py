# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""A file that appears whole or not at all."""

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from carrier_storage.io.disk import named


class Whole(io.FileIO):
    """A file whose `write` writes everything or raises."""

    def write(self, data, /) -> int:
        with memoryview(data).cast("B") as view:
            done = 0
            while done < len(view):
                done += super().write(view[done:]) or 0
            return done


@contextmanager
def replacing(path: str) -> Iterator[Whole]:
    """A fresh file beside `path`, which takes its place when the block ends without an error, and else goes.

    Where `path` is a symbolic link, what it leads to is replaced. An existing file hands on its permissions, and its
    owner where the system allows it; a new one has those of any new file. OSError, ValueError (not a regular file).
    """
    target = os.path.realpath(path)
    old = _existing(path, target)
    beside = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")  # noqa: PTH118, PTH120
    try:
        opened = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        error.filename = path  # not a name that nobody has heard of
        raise
    try:
        with named(path), Whole(opened, "r+b") as file:
            yield file
            if old is not None:
                _inherit(opened, old)
            os.fsync(opened)
        os.replace(beside, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise
    _settle(os.path.dirname(target))  # noqa: PTH120


def _existing(path: str, target: str) -> os.stat_result | None:
    try:
        old = os.stat(path)  # noqa: PTH116 - of the link itself a loop would be no error
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(old.st_mode):
        raise ValueError(f"{path}: not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return old


def _inherit(opened: int, old: os.stat_result) -> None:
    with suppress(OSError):
        os.fchown(opened, old.st_uid, old.st_gid)
    os.fchmod(opened, stat.S_IMODE(old.st_mode) & 0o777)


def _settle(folder: str) -> None:
    """The new name reaches the disk; not every file system can be told to."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
