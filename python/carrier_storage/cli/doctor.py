# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`doctor`: what the library finds on this machine."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import carrier_storage as cs
from carrier_storage.cli import memory, place
from carrier_storage.cli.errors import FAILED, BadInputError
from carrier_storage.cli.units import show_bytes

_OPTIONAL = ("numpy", "rich", "safetensors", "matplotlib")


def command(args: argparse.Namespace) -> int:
    report, healthy = examine(args.temp)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        width = max(map(len, report))
        for name, text in report.items():
            print(f"{name.ljust(width)}  {text}")
    return 0 if healthy else FAILED


def examine(chosen: str | None = None) -> tuple[dict[str, str], bool]:
    """Lines to show, and whether the library can do its work here."""
    report = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
        "carrier-storage": f"{cs.__version__}, {Path(cs.__file__).parent}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} processors",
        **{name: _version(name) for name in _OPTIONAL},
        "memory": _memory(),
        "huge pages": _huge_pages(),
        "open files": _open_files(),
    }
    try:
        directory = place.temporary_directory(chosen)
    except BadInputError as error:
        report["temporary directory"] = f"unusable: {error}"
        healthy = False
    else:
        report["temporary directory"] = str(directory)
        report["file system"] = place.file_system(directory)
        report["free space"] = show_bytes(place.free_space(directory))
        report["direct I/O"] = place.direct_io(directory)
        report["file tier"], healthy = _try("works", _move)
    report["Metal"], _ = _try("available", lambda: cs.Metal(1).release())
    return report, healthy


def _try(good: str, action: Callable[[], None]) -> tuple[str, bool]:
    try:
        action()
    except (RuntimeError, OSError) as error:
        return f"not available: {error}", False
    return good, True


def _move() -> None:
    """Down into a file and up again."""
    hierarchy = cs.Evictable(cs.CPU(1024, dtype=cs.DType.Int32), cs.FileBacked(dtype=cs.DType.Int32))
    hierarchy[1000] = 42
    hierarchy.evict()
    hierarchy.promote()
    value = hierarchy[1000]
    hierarchy.release()
    if value != 42:
        raise RuntimeError(f"a value came back as {value} instead of 42")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _memory() -> str:
    total, available = memory.host_memory(), memory.available_memory()
    text = show_bytes(total) if total else "unknown"
    return f"{text}, {show_bytes(available)} available" if available else text


def _huge_pages() -> str:
    folder = Path("/sys/kernel/mm/transparent_hugepage")
    try:
        modes = (folder / "enabled").read_text(encoding="ascii").split()
        size = int((folder / "hpage_pmd_size").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return "unknown"
    mode = next((m.strip("[]") for m in modes if m.startswith("[")), "unknown")
    return f"transparent, {mode} ({show_bytes(size)})"


def _open_files() -> str:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"{soft} at most (hard limit {hard})"
