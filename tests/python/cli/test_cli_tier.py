# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`tier` on good input: every kind of file, any budget, and the numbers that it tells."""

import os

import numpy as np
import pytest
from command_line import leftovers, run, tier


def save_npy(path, **arrays):
    (array,) = arrays.values()
    np.save(path, array)


def save_npz(path, **arrays):
    np.savez(path, **arrays)


def save_packed(path, **arrays):
    np.savez_compressed(path, **arrays)


def save_safetensors(path, **arrays):
    numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    numpy.save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path)


WRITERS = [
    pytest.param(save_npy, "a.npy", id="npy"),
    pytest.param(save_npz, "a.npz", id="npz"),
    pytest.param(save_packed, "a.npz", id="packed"),
    pytest.param(save_safetensors, "a.safetensors", id="safetensors"),
]


def random_bits(size: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 2**32, size, dtype=np.uint32)


@pytest.mark.parametrize(("save", "name"), WRITERS)
def test_a_file_larger_than_the_budget(temp, tmp_path, save, name):
    save(tmp_path / name, x=random_bits(100_003).view(np.int32))
    seen = tier(temp, tmp_path / name, "--budget", "64KiB", "--passes", 3)
    assert seen["mismatches"] == 0
    assert seen["bytes"] == 100_003 * 4
    assert seen["verified_bytes"] == seen["bytes"] * 4  # three passes and a last look
    assert seen["tiers"]["CPU"]["peak"] <= 65536 < seen["tiers"]["FileBacked"]["peak"]
    assert seen["tiers"]["CPU"]["bytes"] + seen["tiers"]["FileBacked"]["bytes"] == seen["bytes"]
    assert seen["evictions"]["bytes"] >= seen["promotions"]["bytes"] > 0


@pytest.mark.parametrize(("save", "name"), WRITERS[1:])
def test_several_arrays_in_one_file(temp, tmp_path, save, name):
    arrays = {
        "weights": random_bits(50_000).view(np.int32).reshape(100, 500),
        "flags": random_bits(7) % 2 == 0,
        "scalar": np.float32(2.5).reshape(()),
    }
    save(tmp_path / name, **arrays)
    seen = tier(temp, tmp_path / name, "--budget", 65536)
    found = {e["name"]: (e["dtype"], e["stored"], e["slots"]) for e in seen["entries"]}
    assert found == {
        "weights": ("int32", "int32", 50_000),
        "flags": ("bool", "int32", 7),
        "scalar": ("float32", "float32", 1),
    }


VALUES = {
    "float32": np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 0.1], np.float32),
    "nan payloads": (random_bits(999) | 0x7FC00000).view(np.float32),
    "float64": np.array([0.1, 1e300, -1e300, 5e-324, np.nan, 1 / 3], np.float64),
    "float16": np.array([0.1, 65504, 6e-8], np.float16),
    "int64": np.array([-(2**31), 2**31 - 1, 0], np.int64),
    "uint8": np.arange(256, dtype=np.uint8),
    "bool": np.array([True, False, True]),
    "big-endian": np.arange(-500, 500, dtype=">i4"),
    "big-endian float64": np.linspace(-1, 1, 1001).astype(">f8"),
    "fortran": np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_dtypes_and_special_values(temp, tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    seen = tier(temp, tmp_path / "a.npy", "--passes", 10)
    assert seen["entries"][0]["slots"] == values.size


def test_without_a_file_a_set_is_generated(temp):
    seen = tier(temp, "--size", "1MiB", "--passes", 1)
    assert 0.99 < seen["bytes"] / 2**20 <= 1
    assert seen["budget"] == seen["bytes"] // 4
    assert {e["dtype"] for e in seen["entries"]} == {"float32", "int32", "bool"}
    assert all(e["slots"] for e in seen["entries"])


def test_a_budget_for_everything_moves_nothing(temp):
    seen = tier(temp, "--size", "1MiB", "--budget", "4MiB", "--passes", 3)
    assert seen["evictions"]["count"] == seen["promotions"]["count"] == 0
    assert seen["tiers"]["FileBacked"]["peak"] == 0


def test_several_files_and_the_same_one_twice(temp, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(5, dtype=np.int32))
    np.save(tmp_path / "b.NPY", np.arange(6, dtype=np.float32))
    (tmp_path / "b.NPY.npy").rename(tmp_path / "b.NPY")
    seen = tier(temp, tmp_path / "a.npy", tmp_path / "b.NPY", tmp_path / "a.npy")
    assert [e["slots"] for e in seen["entries"]] == [5, 6, 5]


def test_the_table(temp, tmp_path):
    np.save(tmp_path / "mask.npy", np.ones(1000, bool))
    done = run(temp, "tier", tmp_path / "mask.npy", "--passes", 2)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("bool, kept as int32", "1,000", "evictions", "promotions", "peak resident", "mismatches"):
        assert text in done.stdout
    assert leftovers(temp) == []


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer keeps freed memory")
def test_peak_memory_is_the_budget_and_little_more(temp):
    seen = tier(temp, "--size", "128MiB", "--budget", "8MiB", "--passes", 1)
    grown = seen["resident"]["peak"] - seen["resident"]["before"]
    assert seen["tiers"]["CPU"]["peak"] <= 8 << 20
    assert 0 < grown < 64 << 20


def test_another_place_for_the_files(temp, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    tier(temp, "--size", "1MiB", "--temp", other)
    assert leftovers(other) == []


def test_a_picture(temp, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    picture = tmp_path / "out.png"
    tier(temp, "--size", "1MiB", "--plot", picture)
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and data[-8:-4] == b"IEND"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.png", "temp"]
