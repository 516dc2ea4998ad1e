# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""``python bench/python [elements|bulk|scatters|files ...]``: every row beside its peers, as ratios."""

from __future__ import annotations

import importlib
import sys

from harness import report

GROUPS = ("elements", "bulk", "scatters", "files")


def main() -> int:
    wanted = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown:
        print(f"unknown group {unknown[0]!r}; choose from {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    results = []
    for name in wanted:
        print(f"== {name}")
        results += report(importlib.import_module(name).rows())
    held = sum(r.holds() for r in results if r.row.limits)
    print(f"{held} of {sum(1 for r in results if r.row.limits)} targets hold")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
