# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""``python bench/python [GROUP...]``: every row beside its peers, as ratios. See docs/performance.md."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from pathlib import Path

import machine
from harness import Options, Result, report

GROUPS = ("elements", "small", "bulk", "scatters", "files", "memory", "growth")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python bench/python", description="Benchmarks, beside peers.")
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all of them by default"
    )
    parser.add_argument(
        "--mib", type=int, default=256, help="payload of rows that write files (default: 256)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows, medians and ratios")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one sample: does every row run?")
    parser.add_argument(
        "--without-torch", action="store_true", help="leave torch out, which is slow to import"
    )
    asked = parser.parse_args()
    for name in asked.groups:
        if name not in GROUPS:
            parser.error(f"unknown group {name!r}; choose from {', '.join(GROUPS)}")
    if asked.mib < 1:
        parser.error(f"--mib {asked.mib}: at least 1")
    return asked


def summary(group: str, results: list[Result]) -> str:
    verdicts = [r.verdict for r in results if r.verdict]
    held = sum(v.startswith("holds") for v in verdicts)
    text = f"{group:10} {held} of {len(verdicts)} targets hold"
    limit, open_ = verdicts.count("holds (at limit)"), sum(v.startswith("not judged") for v in verdicts)
    if limit:
        text += f", {limit} of them at the machine's limit"
    if open_:
        text += f"; {open_} not judged"
    return "\n".join([text, *(f"    MISSES  {r.row.name}" for r in results if r.verdict == "MISSES")])


def as_json(group: str, result: Result) -> dict[str, object]:
    return {
        "group": group,
        "row": result.row.name,
        "unit": result.row.unit,
        "medians": result.medians,
        "ratios": {said: {"ratio": ratio, "limit": limit} for said, ratio, limit in result.cells()},
        "verdict": result.verdict,
        "left_out": result.notes,
    }


def main() -> int:
    asked = arguments()
    # So that scratch files go when somebody ends the run.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    machine.use_torch(not asked.without_torch)
    options, noted = Options(mib=1 if asked.quick else asked.mib, quick=asked.quick), set(machine.notes())
    for note in sorted(noted):
        print(f"left out: {note}")
    done: dict[str, list[Result]] = {}
    for name in asked.groups or GROUPS:
        print(f"== {name}", flush=True)
        done[name] = report(importlib.import_module(name).rows(options), asked.quick, noted)
    if asked.json:
        rows = [as_json(name, result) for name, results in done.items() for result in results]
        asked.json.write_text(
            json.dumps({"machine": machine.described(), "mib": options.mib, "rows": rows}, indent=1)
        )
    if not asked.quick:
        print("== summary")
        for name, results in done.items():
            print(summary(name, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
