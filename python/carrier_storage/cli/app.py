# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The command line itself: arguments, signals, exit status."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from carrier_storage import __version__
from carrier_storage.cli.errors import BAD_INPUT, INTERRUPTED, BadInputError, StoppedError, need
from carrier_storage.cli.units import parse_bytes

_TIER = """\
Moves arrays that are larger than a budget of memory through a hierarchy of host memory over temporary files, and proves
that no bit is lost on the way.

Each array goes into an Evictable of CPU over FileBacked; one that is larger than a quarter of the budget is split over
several. No more than the budget is kept in memory: what was used longest ago goes down first. A pass brings everything
up, verifies each value against the source, and writes an eighth of the slots by scatter. At the end everything is
verified once more where it lies, in memory or in its file.

Files: .npy, .npz, .safetensors. Float32 and int32 are kept as they are. Other floats are rounded to float32, other
integers become int32 when they fit. Bools become int32 0 and 1 and take 4 bytes, since a file tier holds no bools.
Without a file a set of arrays is generated. The files of the hierarchy go into the temporary directory (TMPDIR).
"""
_TIER_END = """\
Bytes: 67108864, 64MiB, 64M, 1.5GiB; KB, MB and GB count in 1000.

Exit status: 0 every value is right, 1 a value differs, 2 bad input or no space, 130 interrupted.

Examples:
  %(prog)s                                    256 MiB of generated values in 64 MiB
  %(prog)s weights.safetensors emb.npy --budget 2GiB --passes 3 --plot residency.png
  %(prog)s --size 1GiB --budget 128MiB --temp /mnt/nvme --json
"""
_SESSIONS = """\
Lists the hidden directories, .carrier-storage-<pid>-<random>, that hold the files of FileBacked carriers. A live one is
locked by its process. A dead one was left by a process that was killed; the next session of the same user in the same
place removes it, and so does --reap.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m carrier_storage",
        description="Typed, tiered storage for tensor programs: its tools.",
        epilog="`python -m carrier_storage COMMAND --help` says more.",
    )
    top.add_argument("--version", action="version", version=f"carrier-storage {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    tier = commands.add_parser(
        "tier",
        help="move arrays larger than a budget of memory through their tiers, and verify them",
        description=_TIER,
        epilog=_TIER_END,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tier.add_argument("files", nargs="*", metavar="FILE", help=".npy, .npz or .safetensors")
    tier.add_argument(
        "--budget", type=_bytes, metavar="BYTES", help="most bytes in memory (a quarter of the values)"
    )
    tier.add_argument(
        "--passes", type=_count, default=2, metavar="N", help="how often to walk all values (2)"
    )
    tier.add_argument("--size", type=_bytes, metavar="BYTES", help="of the generated set (256MiB)")
    tier.add_argument("--plot", metavar="PICTURE", help="draw residency over time: .png, .svg or .pdf")
    tier.add_argument("--quiet", action="store_true", help="no progress bar")

    doctor = commands.add_parser("doctor", help="what the library finds on this machine")
    sessions = commands.add_parser(
        "sessions",
        help="session directories, live and dead",
        description=_SESSIONS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sessions.add_argument("--reap", action="store_true", help="remove the dead ones that are yours")
    for command in (tier, doctor, sessions):
        command.add_argument(
            "--temp", metavar="DIR", help="the temporary directory (TMPDIR, else the system's)"
        )
        command.add_argument("--json", action="store_true", help="for machines")
    return top


def _bytes(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**6):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count, 1 or more")
    return int(text)


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    if name == "tier":
        need("numpy", "tier")
        need("rich", "tier")
        from carrier_storage.cli.tier import command
    elif name == "doctor":
        from carrier_storage.cli.doctor import command
    else:
        from carrier_storage.cli.sessions import command
    return command


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise StoppedError(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that files are removed on the way out
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):  # names may hold what the terminal cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        args = parser().parse_args(arguments)
        status = _command(args.command)(args)
        sys.stdout.flush()
        return status
    except BadInputError as error:
        print(f"carrier_storage: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except StoppedError as stopped:
        return stopped.status
    except BrokenPipeError:  # the reader went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
