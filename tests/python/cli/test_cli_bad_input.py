# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What `tier` refuses: exit status 2, and a message that names the file and the reason."""

import json
import os
import pickle
import subprocess
from io import BytesIO

import numpy as np
import pytest
from command_line import refused, run_code

from raw_files import npy, npz, safetensors, tensor


def saved(array) -> bytes:
    out = BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def damaged_npz() -> bytes:
    data = bytearray(npz(a=npy(data=b"\x55" * 4000, shape=(1000,))))
    data[data.index(b"\x55" * 100)] = 0x54
    return bytes(data)


def twice() -> bytes:
    return npz(a=npy(), b=npy()).replace(b"b.npy", b"a.npy")


def encrypted() -> bytes:
    data = bytearray(npz(a=npy()))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


CASES = {
    "empty.npy": (b"", "not a .npy"),
    "text.npy": (b"hello, world, this is no array", "not a .npy"),
    "pickle.npy": (pickle.dumps([1, 2]), "not a .npy"),
    "objects.npy": (saved(np.array([{}, None], object)), "pickled"),
    "short.npy": (npy()[:-1], "truncated"),
    "headless.npy": (npy()[:20], "not a .npy"),
    "liar.npy": (npy(shape=(10**15,)), "truncated"),
    "overflow.npy": (npy(shape=(2**62, 2**62)), "truncated"),
    "negative.npy": (npy(shape=(-3,)), "no array has"),
    "floating.npy": (npy(shape=(3.0,)), "not a .npy"),
    "longer.npy": (npy() + b"\0", "after the"),
    "version.npy": (npy(version=(9, 9)), "version"),
    "hostile.npy": (npy(descr="<i4' + __import__('os').abort() + '"), "not a .npy"),
    "zero.npy": (npy(shape=(0,), data=b""), "no elements"),
    "zero2.npy": (npy(shape=(5, 0), data=b""), "no elements"),
    "complex.npy": (saved(np.ones(3, complex)), "complex128"),
    "text2.npy": (saved(np.array(["a", "b"])), "not supported"),
    "dates.npy": (saved(np.array(["2026-01-01"], "M8[D]")), "not supported"),
    "fields.npy": (saved(np.zeros(2, [("a", "f4"), ("b", "i4")])), "not supported"),
    "long.npy": (saved(np.ones(2, np.longdouble)), "not supported"),
    "big.npy": (saved(np.array([0, 1, 2**31], np.int64)), "index 2"),
    "unsigned.npy": (saved(np.array([2**32 - 1], np.uint32)), "4294967295"),
    "huge.npy": (saved(np.array([2**64 - 1], np.uint64)), "does not fit Int32"),
    "little.npy": (saved(np.array([-(2**31) - 1], np.int64)), "does not fit Int32"),
    "empty.npz": (b"", "not an .npz"),
    "none.npz": (npz(), "no arrays"),
    "cut.npz": (npz(a=npy())[:-30], "not an .npz"),
    "liar.npz": (npz(good=npy(), evil=npy(shape=(10**12,))), "'evil': is truncated"),
    "objects.npz": (npz(evil=saved(np.array([None], object))), "'evil': holds pickled"),
    "zero.npz": (npz(evil=npy(shape=(0,), data=b"")), "'evil': has no elements"),
    "big.npz": (npz(evil=saved(np.array([2**40]))), "'evil': value 1099511627776 at index 0"),
    "damaged.npz": (damaged_npz(), "'a': cannot be unpacked"),
    "twice.npz": (twice(), "twice"),
    "secret.npz": (encrypted(), "encrypted"),
    "empty.safetensors": (b"", "not a .safetensors"),
    "cut.safetensors": (safetensors({"a": tensor()})[:-1], "not a .safetensors"),
    "longer.safetensors": (safetensors({"a": tensor()}) + b"\0", "not a .safetensors"),
    "head.safetensors": (safetensors(b"{}", b"", length=2**60), "not a .safetensors"),
    "none.safetensors": (safetensors({}, b""), "no arrays"),
    "liar.safetensors": (safetensors({"a": tensor(shape=(4,))}), "not a .safetensors"),
    "overlap.safetensors": (safetensors({"a": tensor(), "b": tensor()}), "not a .safetensors"),
    "brain.safetensors": (safetensors({"evil": tensor("BF16", (6,))}), "'evil': dtype BF16"),
    "zero.safetensors": (safetensors({"evil": tensor("F32", (0,), (0, 0))}, b""), "'evil': has no elements"),
    "twice.safetensors": (
        safetensors(b'{"a":%b,"a":%b}' % ((json.dumps(tensor()).encode(),) * 2)),
        "",  # refused by the library or by us, in words of either
    ),
    "big.safetensors": (
        safetensors({"evil": tensor("I64", (1,), (0, 8))}, b"\xff" * 7 + b"\x7f"),
        "'evil': value",
    ),
    "unknown.txt": (b"1 2 3", "unknown kind"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file(temp, tmp_path, name):
    data, reason = CASES[name]
    if name.endswith(".safetensors"):
        pytest.importorskip("safetensors", reason="needs safetensors")
    path = tmp_path / name
    path.write_bytes(data)
    message = refused(temp, "tier", path)
    assert str(path) in message and reason in message
    assert len(message.splitlines()) == 1


def test_a_good_file_does_not_save_a_bad_one(temp, tmp_path):
    np.save(tmp_path / "good.npy", np.arange(3))
    assert "missing.npy: No such file" in refused(
        temp, "tier", tmp_path / "good.npy", tmp_path / "missing.npy"
    )


def test_what_is_no_file(temp, tmp_path):
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")  # opening it would wait for ever
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    for name in ("folder.npy", "pipe.npy"):
        assert f"{name}: not a regular file" in refused(temp, "tier", tmp_path / name)
    assert "loop.npy: Too many levels" in refused(temp, "tier", tmp_path / "loop.npy")


BUDGETS = ["0", "-5", "=-5MiB", "nan", "inf", "1e9", "abc", "", "64XiB", "64iB", "0x100", "0.1", "٣"]
BUDGETS += ["65535", "1KiB", "4096TiB"]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_bad_budget(temp, budget):
    arguments = [f"--budget{budget}"] if budget.startswith("=") else ["--budget", budget]
    assert "--budget" in refused(temp, "tier", "--size", "1MiB", *arguments)


@pytest.mark.parametrize("budget", ["65536", "64KiB", "64k", " 64 KiB ", "0.0625MiB", "65.536kb", "65536B"])
def test_a_budget_may_have_a_unit(temp, budget):
    code = f"from carrier_storage.cli.units import parse_bytes; print(parse_bytes({budget!r}))"
    assert run_code(temp, code).stdout == "65536\n"


def test_the_least_budget_grows_with_the_values(temp):
    message = refused(temp, "tier", "--size", "2GiB", "--budget", "64KiB", "--temp", temp)
    assert "at least 131" in message


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--passes", "0"], "--passes"),
        (["--passes", "-1"], "--passes"),
        (["--passes", "1.5"], "--passes"),
        (["--size", "0"], "--size"),
        (["--size", "1"], "--size"),
        (["--size", "many"], "--size"),
        (["--size", "512TiB", "--budget", "1GiB"], "--budget"),
        (["--size", "1TiB", "--budget", "64MiB"], "no space left"),
        (["--plot", "/nowhere/at/all.png"], "/nowhere/at"),
        (["--plot", "picture.jpeg"], "picture.jpeg"),
        (["--plot", ""], "--plot"),
        (["--temp", "/nowhere/at/all"], "/nowhere/at/all: no files can be made there"),
        (["--unknown"], "--unknown"),
    ],
)
def test_bad_arguments(temp, arguments, reason):
    assert reason in refused(temp, "tier", *arguments)


def test_no_command(temp):
    assert "COMMAND" in refused(temp)
    assert "invalid choice" in refused(temp, "nothing")


def test_a_size_beside_files(temp, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert "--size" in refused(temp, "tier", tmp_path / "a.npy", "--size", "1MiB")


def test_a_temporary_directory_that_cannot_be_used(tmp_path):
    assert "TMPDIR" in refused(tmp_path / "missing", "tier", "--size", "1MiB")
    (tmp_path / "file").touch()
    assert "TMPDIR" in refused(tmp_path / "file", "tier", "--size", "1MiB")


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("matplotlib", ["--plot", "a.png"], "carrier-storage[plot]"),
        ("rich", [], "carrier-storage[cli]"),
        ("numpy", [], "carrier-storage[cli]"),
        ("safetensors", ["a.safetensors"], "carrier-storage[cli]"),
    ],
)
def test_a_missing_module(temp, tmp_path, module, arguments, extra):
    (tmp_path / "a.safetensors").write_bytes(b"")
    code = f"""
import os, sys
os.chdir({str(tmp_path)!r})
sys.modules[{module!r}] = None
from carrier_storage.cli.app import main
sys.exit(main(["tier", *{arguments!r}]))
"""
    done = run_code(temp, code)
    assert done.returncode == 2 and module in done.stderr and extra in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"cannot mount a small file system: {error}")
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_too_small_is_seen_before_the_work(temp, small_disk):
    message = refused(temp, "tier", "--size", "8MiB", "--budget", "1MiB", "--temp", small_disk)
    assert f"{small_disk}: no space left" in message


def test_a_disk_that_fills_up_during_the_work(temp, small_disk):
    code = f"""
import sys
from carrier_storage.cli import app, place
free, place.free_space = place.free_space, lambda path: 1 << 40
status = app.main(["tier", "--size", "8MiB", "--budget", "1MiB", "--temp", {str(small_disk)!r}])
sys.exit(status)
"""
    done = run_code(temp, code)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{small_disk}: no space left" in done.stderr and "Traceback" not in done.stderr
    assert os.listdir(small_disk) == []
