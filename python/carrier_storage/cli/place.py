# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The temporary directory: where it is, whether it can be used, what it lies on."""

import errno
import mmap
import os
import re
import tempfile
from pathlib import Path

from carrier_storage.cli.errors import BadInputError
from carrier_storage.cli.units import show_bytes


def temporary_directory(chosen: str | None = None) -> Path:
    """Where session directories go: what the user chose, or Python's choice. Refuses one that cannot be written.

    Python passes over a TMPDIR that it cannot write; who set it would rather know.
    """
    wanted = chosen or os.environ.get("TMPDIR")
    if wanted is not None:
        path = Path(wanted).absolute()
        try:
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            name = "--temp" if chosen else "TMPDIR"
            raise BadInputError(f"{name} {path}: no files can be made there: {error.strerror}") from None
        tempfile.tempdir = str(path)
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise BadInputError(
            f"no temporary directory can be written: {error.strerror}; choose one by --temp"
        ) from None


def free_space(path: Path) -> int:
    """Bytes that this user may still write there."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def disk_full(path: Path, needed: int) -> BadInputError:
    return BadInputError(
        f"{path}: no space left on device: the file tier needs up to {show_bytes(needed)}, and"
        f" {show_bytes(free_space(path))} are free; free some, raise --budget, or choose another place by --temp"
    )


def describe(error: OSError, path: Path, needed: int) -> BadInputError:
    """What went wrong with a file of the hierarchy, for the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(path, needed)
    return BadInputError(f"{error.filename or path}: {error.strerror or error}")


def file_system(path: Path) -> str:
    """Its type, device and mount point, as far as the system tells."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    best, text = -1, "unknown"
    resolved = path.resolve()
    for line in lines:
        left, _, right = line.partition(" - ")
        where = Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), left.split()[4]))
        if len(where.parts) >= best and resolved.is_relative_to(where):
            best = len(where.parts)
            kind, device = right.split()[:2]
            text = f"{kind} ({device} on {where})"
    return text


def direct_io(path: Path) -> str:
    """Whether a file there can be written past the page cache: tried, not looked up."""
    if not hasattr(os, "O_DIRECT"):
        return "no: this system has no O_DIRECT"
    name = path / f".carrier-doctor-{os.getpid()}"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600)
    except OSError as error:
        if error.errno == errno.EINVAL:
            name.unlink(missing_ok=True)  # some systems make the file first
        return f"no: {error.strerror}; transfers go through the page cache"
    try:
        name.unlink()
        with mmap.mmap(-1, mmap.PAGESIZE) as page:  # aligned memory
            os.write(descriptor, page)
        return "yes"
    except OSError as error:
        return f"no: {error.strerror}; transfers go through the page cache"
    finally:
        os.close(descriptor)
