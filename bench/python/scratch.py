# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""A folder for files of rivals, on the file system where the session directory is."""

from __future__ import annotations

import os
import tempfile
from types import TracebackType


class Folder:
    """Removed at the end of the ``with`` block, whatever is in it."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="carrier-bench-", ignore_cleanup_errors=True)
        self.root, self._count = self._made.name, 0

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._made.cleanup()

    def fresh(self) -> str:
        """A path that was not used before: a name used before would be found quicker."""
        self._count += 1
        return os.path.join(self.root, f"f{self._count}")


def drop_from_cache(path: str | os.PathLike[str]) -> None:
    """Writes the file's pages to the disk and forgets them: who reads next reads the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
