# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The benchmarks run: every row of every group, at sizes that measure nothing."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "python"
GROUPS = {"elements", "small", "bulk", "scatters", "files", "memory", "growth"}


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(
    "san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer would watch the rivals too"
)
def test_every_row_runs(session, tmp_path):
    """Each row gives a time for each contender that is here, prints itself, and leaves no file behind."""
    written = tmp_path / "rows.json"
    done = run("--quick", "--without-torch", "--json", str(written))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rows = json.loads(written.read_text())["rows"]
    assert {row["group"] for row in rows} == GROUPS
    names = [row["row"] for row in rows]
    assert len(set(names)) == len(names)
    for row in rows:
        assert row["row"] in done.stdout
        assert row["medians"] and all(map(math.isfinite, row["medians"].values())), row
        for comparison in row["ratios"].values():
            assert not math.isnan(comparison["ratio"]), row  # a few carriers may take no page that is new
    assert os.listdir(session) == []


def test_a_group_that_is_not_there():
    """The refusal lists the groups that are."""
    done = run("element")
    assert done.returncode == 2
    assert "element" in done.stderr and all(group in done.stderr for group in GROUPS)


def test_judgement(monkeypatch):
    """A row holds by its ratios, or because the control in bare C takes as long; what has not run is not judged."""
    monkeypatch.syspath_prepend(str(BENCH))
    import harness

    def row(ours, limits, **rivals):
        times = {name.replace("_", " "): (lambda t=t: t) for name, t in rivals.items()}
        made = harness.Row("row", lambda: ours, times, limits, rounds=3)
        return harness.measure(made, quick=False).verdict

    assert row(1.0, {"numpy": 0.5}, numpy=2.0) == "holds"
    assert row(1.1, {"numpy": 0.5}, numpy=2.0) == "MISSES"
    assert row(1.1, {"numpy": 0.5}, numpy=2.0, bare_C=1.0) == "holds (at limit)"
    assert row(1.2, {"numpy": 0.5}, numpy=2.0, bare_C=1.0) == "MISSES"
    assert row(1.0, {"a|b": 0.5}, a=3.0, b=2.0) == "holds"
    assert row(1.0, {"a|b": 0.5}, a=3.0, b=1.0) == "MISSES"
    assert row(1.0, {"torch": 0.5}) == "not judged"
    assert row(1.0, {}, numpy=2.0) == ""

    def growth(ours, control):
        sizes = [
            {size: (lambda t=t: t) for size, t in zip("abc", times, strict=True)} for times in (ours, control)
        ]
        return harness.measure(harness.Growth("growth", *sizes, rounds=3), quick=False).verdict

    assert growth((2.0, 1.0, 1.5), (1.0, 1.0, 1.0)) == "holds"
    assert growth((1.0, 1.0, 1.6), (1.0, 1.0, 1.0)) == "MISSES"
    assert growth((1.0, 1.0, 1.6), (1.0, 1.0, 1.5)) == "holds (at limit)"
    assert growth((1.0, 1.0, 3.0), (1.0, 1.0, 1.6)) == "not judged: the control grows too"
