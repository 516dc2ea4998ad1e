# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`sessions`: the hidden directories that hold the files of FileBacked carriers, and what killed processes left.

A directory is alive while a process holds the lock on it. The library itself removes dead ones whenever the same user's
next session begins in the same place.
"""

import argparse
import fcntl
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from carrier_storage.cli import place
from carrier_storage.cli.errors import FAILED
from carrier_storage.cli.units import show_bytes

_NAME = re.compile(r"\.carrier-storage-(\d+)-\w+")


@dataclass(slots=True)
class Session:
    """One directory. `state`: live, dead, unknown (not to be asked), removed, or left (not to be removed)."""

    path: str
    pid: int
    uid: int
    state: str
    files: int = 0
    bytes: int = 0
    reason: str = ""


def command(args: argparse.Namespace) -> int:
    directory = place.temporary_directory(args.temp)
    found = look(directory, reap=args.reap)
    if args.json:
        print(json.dumps([asdict(session) for session in found], indent=2))
    elif not found:
        print(f"No sessions in {directory}.")
    else:
        _show(found)
    return FAILED if any(session.state == "left" for session in found) else 0


def look(directory: Path, *, reap: bool = False) -> list[Session]:
    """The sessions there, by name. With `reap` the dead ones of this user are removed."""
    found = []
    parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in sorted(os.listdir(parent)):  # noqa: PTH208 - of the open directory
            if match := _NAME.fullmatch(name):
                session = _ask(parent, directory, name, int(match[1]), reap)
                if session is not None:
                    found.append(session)
    finally:
        os.close(parent)
    return found


def _ask(parent: int, directory: Path, name: str, pid: int, reap: bool) -> Session | None:
    try:
        uid = os.stat(name, dir_fd=parent, follow_symlinks=False).st_uid
    except OSError:  # it went in the meantime
        return None
    session = Session(str(directory / name), pid, uid, "unknown")
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        session.reason = error.strerror or str(error)
        return session
    try:
        uid = session.uid = os.fstat(opened).st_uid
        for entry in os.scandir(opened):
            session.files += 1
            session.bytes += entry.stat(follow_symlinks=False).st_blocks * 512
        session.state = _state(opened)
        if reap and session.state == "dead" and uid == os.geteuid():
            _remove(session, parent, name, opened)
    except OSError as error:
        session.reason = error.strerror or str(error)
    finally:
        os.close(opened)  # which gives the lock up
    return session


def _state(opened: int) -> str:
    """Takes the lock of a dead one."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "live"
    return "dead"


def _remove(session: Session, parent: int, name: str, opened: int) -> None:
    """With the lock held: nobody else is in there, or can be."""
    session.state = "left"
    for file in os.listdir(opened):
        os.unlink(file, dir_fd=opened)
    os.rmdir(name, dir_fd=parent)
    session.state = "removed"


def _show(found: list[Session]) -> None:
    rows = [("state", "pid", "owner", "files", "on disk", "directory")]
    for s in found:
        state = f"{s.state} ({s.reason})" if s.reason else s.state
        rows.append((state, str(s.pid), _owner(s.uid), str(s.files), show_bytes(s.bytes), s.path))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if gone := [s for s in found if s.state == "removed"]:
        print(f"Removed {len(gone)}, {show_bytes(sum(s.bytes for s in gone))} on disk.")
    elif dead := sum(s.state == "dead" for s in found):
        print(f"{dead} without a process; --reap removes those that are yours.")


def _owner(uid: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
