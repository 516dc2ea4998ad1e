# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`tier`: arrays larger than a budget of memory, walked, updated and verified."""

import argparse
import json
import time
from pathlib import Path

from carrier_storage.cli import memory, place, plot
from carrier_storage.cli.entries import Entry
from carrier_storage.cli.errors import FAILED, BadInputError
from carrier_storage.cli.generated import generated_set
from carrier_storage.cli.job import Job, least_budget
from carrier_storage.cli.result import Result
from carrier_storage.cli.screen import Bar, show
from carrier_storage.cli.sources import open_sources
from carrier_storage.cli.units import show_bytes

DEFAULT_SIZE = 256 << 20
_LEAST_SIZE = 4096


def command(args: argparse.Namespace) -> int:
    target = Path(args.plot) if args.plot is not None else None
    if target is not None:
        plot.check(target)
    directory = place.temporary_directory(args.temp)
    entries = _entries(args)
    budget = check_budget(args.budget, sum(entry.nbytes for entry in entries))
    result = run(entries, budget, args.passes, directory, hidden=args.quiet or args.json)
    if target is not None:
        plot.draw(result, target)
    if args.json:
        print(json.dumps(result.for_machines(), indent=2))
    else:
        show(result)
    return FAILED if result.mismatches else 0


def _entries(args: argparse.Namespace) -> list[Entry]:
    if args.files:
        if args.size is not None:
            raise BadInputError("--size is for the generated set; leave it out where files are given")
        return open_sources(args.files)
    size = DEFAULT_SIZE if args.size is None else args.size
    if size < _LEAST_SIZE:
        raise BadInputError(f"--size {size}: at least {_LEAST_SIZE} bytes are needed")
    return generated_set(size)


def check_budget(budget: int | None, total: int) -> int:
    """Without one it is a quarter of the values."""
    least = least_budget(total)
    if budget is None:
        return max(least, total // 4)
    if budget < least:
        raise BadInputError(
            f"--budget {budget}: too small for {show_bytes(total)} of values; at least {least} bytes"
            f" ({show_bytes(least)}) are needed"
        )
    there = memory.host_memory()
    if there and budget > there:
        raise BadInputError(
            f"--budget {budget}: larger than the memory there is ({there} bytes, {show_bytes(there)})"
        )
    return budget


def run(entries: list[Entry], budget: int, passes: int, directory: Path, *, hidden: bool) -> Result:
    total = sum(entry.nbytes for entry in entries)
    if total - budget > place.free_space(directory):
        raise place.disk_full(directory, total - budget)
    with Bar(total * (passes + 2), hidden=hidden) as bar:
        memory.forget_peak()
        before = memory.resident()
        began = time.perf_counter()
        job = Job(entries, budget, bar.advance)
        try:
            job.load()
            for _ in range(passes):
                job.walk()
            job.inspect()
        except MemoryError as error:
            raise BadInputError(f"out of memory ({error}); choose a smaller --budget") from None
        except OSError as error:
            raise place.describe(error, directory, total) from None
        finally:
            job.close()
    job.result.seconds = time.perf_counter() - began
    job.result.resident_before = before
    job.result.resident_peak = memory.peak_resident()
    return job.result
