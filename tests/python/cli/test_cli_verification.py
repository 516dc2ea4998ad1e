# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""That `tier` would notice: values changed behind its back, in memory and in files."""

import os
from pathlib import Path

import carrier_storage as cs
import numpy as np
import pytest
from carrier_storage.cli import peek
from carrier_storage.cli.generated import PERIOD, expected, generated_set, update
from carrier_storage.cli.job import Job, line
from command_line import run_code

SIZE, BUDGET = 1 << 19, 1 << 16


@pytest.fixture
def job():
    job = Job(generated_set(SIZE), BUDGET)
    job.load()
    yield job
    job.close()


def evicted(job):
    return next(part for part in job.parts if part.hierarchy.is_evicted())


def promoted(job):
    return next(part for part in job.parts if not part.hierarchy.is_evicted())


def flip(path, slot):
    with open(path, "r+b", buffering=0) as file:
        file.seek(4 * slot)
        (low,) = file.read(1)
        file.seek(4 * slot)
        file.write(bytes([low ^ 1]))


def test_nothing_is_wrong_when_nobody_interferes(job):
    for _ in range(PERIOD + 2):
        job.walk()
    job.inspect()
    assert job.result.mismatches == 0 and job.result.examples == []


def test_a_bit_in_a_file_is_found_by_a_walk(job):
    part = evicted(job)
    flip(part.hierarchy.secondary.path, 100)
    job.walk()
    (found,) = job.result.examples
    assert job.result.mismatches == 1
    assert (found.label, found.index, found.passes) == (part.entry.label, part.start + 100, 0)
    assert int(found.want, 16) ^ int(found.have, 16) == 1


def test_a_bit_in_a_file_is_found_where_it_lies(job):
    flip(evicted(job).hierarchy.secondary.path, 0)
    job.inspect()
    assert job.result.mismatches == 1


def test_a_value_in_memory_is_found(job):
    part = promoted(job)
    slot = part.size - 1
    part.hierarchy[slot] = 1 if part.hierarchy[slot] == 0 else 0
    job.inspect()
    assert [m.index for m in job.result.examples] == [part.start + slot]


def test_a_file_that_was_cut_short_is_no_success(job):
    part = evicted(job)
    os.truncate(part.hierarchy.secondary.path, 4 * (part.size - 10))
    job.inspect()
    assert job.result.mismatches == 10
    with pytest.raises(OSError):
        job.walk()


def test_many_mismatches_are_counted_and_a_few_told(job):
    part = evicted(job)
    path = part.hierarchy.secondary.path
    inverted = ~np.fromfile(path, np.uint32)
    inverted.tofile(path)
    job.inspect()
    assert job.result.mismatches == part.size
    assert len(job.result.examples) == 10


def test_a_lost_update_is_found(job):
    job.walk()
    part = promoted(job)
    part.hierarchy.scatter(
        cs.Tensor(cs.CPU(1, dtype=part.hierarchy.dtype()), 0, line(1)),
        cs.Tensor(part.hierarchy, 0, line(1)),
        line(1),
    )
    job.inspect()
    assert job.result.mismatches == 1


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_the_exit_status_of_a_mismatch(temp, arguments):
    code = f"""
import sys
import numpy as np
from carrier_storage import Evictable
from carrier_storage.cli import app, peek
honest = peek.view_of
def changed(carrier, *arguments):
    values = honest(carrier, *arguments)
    if isinstance(carrier, Evictable):  # whose tiers are viewed in turn
        values = np.array(values)
        values.view(np.uint32)[3] ^= 1
    return values
peek.view_of = changed
sys.exit(app.main(["tier", "--size", "64KiB", "--passes", "1", *{arguments!r}]))
"""
    done = run_code(temp, code)
    assert (done.returncode, done.stderr) == (1, "")
    assert "index 3 after" in done.stdout or '"index": 3' in done.stdout


@pytest.mark.parametrize("entry", generated_set(1 << 16), ids=lambda entry: entry.name)
def test_updates_do_not_depend_on_how_they_are_cut(entry):
    whole = expected(entry, 0, entry.size, 19)
    pieces = [expected(entry, at, min(at + 37, entry.size), 19) for at in range(0, entry.size, 37)]
    assert np.array_equal(np.concatenate(pieces).view(np.uint32), whole.view(np.uint32))
    last = update(entry, 18, 0, entry.size)
    assert np.array_equal(whole[18 % PERIOD :: PERIOD].view(np.uint32), last.view(np.uint32))
    assert not np.array_equal(whole.view(np.uint32), expected(entry, 0, entry.size, 18).view(np.uint32))


def test_the_view_is_what_elements_are():
    hierarchy = cs.Evictable(cs.CPU(9, dtype=cs.DType.Int32), cs.FileBacked(dtype=cs.DType.Int32))
    for i in range(9):
        hierarchy[i] = i * i
    assert peek.view_of(hierarchy, 2, 9, np.dtype(np.int32)).tolist() == [hierarchy[i] for i in range(2, 9)]
    hierarchy.evict()
    assert Path(hierarchy.secondary.path).stat().st_size == 36
    assert peek.view_of(hierarchy, 2, 9, np.dtype(np.int32)).tolist() == [i * i for i in range(2, 9)]
    hierarchy.release()
