# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Memory of the machine and of this process."""

import os
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")


def host_memory() -> int:
    """Bytes this process may use at most: the machine's, or less where a control group says so. 0: unknown."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
    return min([total, *_group_limits()])


def _group_limits() -> list[int]:
    limits = []
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, name = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            root, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        folder = root / group.lstrip("/")
        for place in [folder, *folder.parents]:
            with suppress(OSError, ValueError):  # not there, or "max"
                limits.append(int((place / name).read_text(encoding="ascii")))
            if place == root:
                break
    return limits


def available_memory() -> int:
    """What the system could give without swapping; 0: unknown."""
    return _kib(Path("/proc/meminfo"), "MemAvailable:")


def resident() -> int:
    """Bytes of this process in memory; 0: unknown."""
    return _kib(_STATUS, "VmRSS:")


def peak_resident() -> int:
    """The most there ever was, or since `forget_peak`."""
    if peak := _kib(_STATUS, "VmHWM:"):
        return peak
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Lets the peak begin anew, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _kib(path: Path, field: str) -> int:
    try:
        for line in path.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0
