# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Where rivals put their files, and what becomes of these."""

from __future__ import annotations

import os
from types import TracebackType

import carrier_storage as cs


class Folder:
    """Paths in the session directory, where the files of carriers are: no other folder costs quite the same.

    What is there under them when the ``with`` block ends is removed. A killed run's goes with its session directory.
    """

    def __init__(self) -> None:
        self._keeps = cs.FileBacked(dtype=cs.DType.Float32)  # the session directory
        self._paths: list[str] = []

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for path in self._paths:
            remove(path)

    def fresh(self) -> str:
        """A path that was not used before: a name used before would be found quicker."""
        name = f"{self._keeps.path.stem}-rival-{len(self._paths)}"
        self._paths.append(str(self._keeps.path.with_name(name)))
        return self._paths[-1]


def remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def drop_from_cache(path: str | os.PathLike[str]) -> None:
    """Writes the file's pages to the disk and forgets them: who reads next reads the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
