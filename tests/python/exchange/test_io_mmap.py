# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`load(mmap=True)`: read-only CPU carriers over the file itself."""

import gc
import os

import carrier_storage as cs
import numpy as np
import pytest
from carrier_storage.io import load

from helpers import run_child
from kinds import BOOL, F32, I32
from raw_files import npy, safetensors, tensor

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")

ARRAYS = {
    F32: np.linspace(-1, 1, 24, dtype="f4").reshape(2, 3, 4),
    I32: np.arange(-12, 12, dtype="i4").reshape(4, 6),
    BOOL: (np.arange(24) % 3 == 0).reshape(24),
}
every_format = pytest.mark.parametrize("ending", ["npy", "safetensors"])


def write(folder, ending, array):
    path = folder / f"w.{ending}"
    if ending == "npy":
        np.save(path, array)
    else:
        safetensors_numpy.save_file({"w": array}, path)
    return path


@every_format
@pytest.mark.parametrize("dtype", ARRAYS, ids=str)
def test_values_and_shape(tmp_path, ending, dtype):
    """A read-only CPU carrier: writes are RuntimeErrors, and the file stays as it is."""
    path = write(tmp_path, ending, ARRAYS[dtype])
    before = path.read_bytes()
    loaded = load(path, mmap=True)["w"]
    assert type(loaded.carrier) is cs.CPU and loaded.dtype() is dtype
    assert loaded.layout.shape == cs.Shape(*ARRAYS[dtype].shape)
    assert loaded.tolist() == ARRAYS[dtype].ravel("F").tolist()
    assert not loaded.is_mutable() and not loaded.carrier.is_owned() and loaded.version == 0
    for write_it in (
        lambda: loaded.carrier.set_value(0, True if dtype is BOOL else 1),
        lambda: loaded.carrier.write(0, [True if dtype is BOOL else 1]),
        lambda: loaded.carrier.fill(True if dtype is BOOL else 1),
        lambda: loaded.carrier.edit().__enter__(),
    ):
        with pytest.raises(RuntimeError):
            write_it()
    assert path.read_bytes() == before


def test_fortran_order(tmp_path):
    array = np.asfortranarray(ARRAYS[F32])
    loaded = load(write(tmp_path, "npy", array), mmap=True)["w"]
    assert loaded.tolist() == array.ravel("F").tolist()


@every_format
def test_it_is_the_file(tmp_path, ending):
    """Not a copy: a change of the file is seen."""
    path = write(tmp_path, ending, ARRAYS[I32])
    loaded = load(path, mmap=True)["w"]
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\x39\x30\0\0")
    assert loaded[23] == 12345


@every_format
def test_views_and_release(tmp_path, ending):
    """The mapping lives as long as anything over it; released and dropped, it goes."""
    path = write(tmp_path, ending, ARRAYS[I32])
    loaded = load(path, mmap=True)["w"]
    view = memoryview(loaded.carrier)
    twin = loaded.carrier.new_like(loaded.carrier)
    loaded.carrier.release()
    path.unlink()
    assert view.tolist() == ARRAYS[I32].ravel().tolist() == twin.tolist()
    assert mapped(path)
    del view, loaded
    gc.collect()
    assert not mapped(path)


def mapped(path):
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc")
    with open("/proc/self/maps") as maps:
        return str(path) in maps.read()


def test_only_what_is_asked_for(tmp_path):
    """An entry that cannot be mapped is no matter where it is not asked for."""
    path = tmp_path / "w.safetensors"
    safetensors_numpy.save_file({"a": ARRAYS[F32], "b": np.ones(3)}, path)
    assert list(load(path, names=["a"], mmap=True)) == ["a"]
    with pytest.raises(ValueError, match="'b'"):
        load(path, mmap=True)
    with pytest.raises(ValueError, match="'b'.*converted"):
        load(path, mmap=True, convert=True)


PADDING = next(i for i in range(4) if (10 + 55 + 1 + i) % 4)


def unaligned(ending):
    values = np.arange(3, dtype="<i4").tobytes()
    if ending == "npy":
        return npy(
            header="{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}" + " " * PADDING, data=values
        )
    return safetensors({"m": tensor("BOOL", (1,), (0, 1)), "w": tensor(offsets=(1, 13))}, b"\1" + values)


REFUSED = {
    "archive.npz": lambda path: np.savez(path, w=ARRAYS[F32]),
    "packed.npz": lambda path: np.savez_compressed(path, w=ARRAYS[F32]),
    "swapped.npy": lambda path: np.save(path, ARRAYS[I32].astype(">i4")),
    "double.npy": lambda path: np.save(path, np.ones(3)),
    "short.npy": lambda path: np.save(path, np.ones(3, "i2")),
    "unaligned.npy": lambda path: path.write_bytes(unaligned("npy")),
    "unaligned.safetensors": lambda path: path.write_bytes(unaligned("safetensors")),
    "none.npy": lambda path: np.save(path, np.ones(0, "f4")),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("convert", [False, True])
def test_what_cannot_be_mapped(tmp_path, name, convert):
    """ValueError, also where conversion is allowed; what is only unaligned loads without mapping."""
    path = tmp_path / name
    REFUSED[name](path)
    with pytest.raises(ValueError, match=name):
        load(path, mmap=True, convert=convert)
    if "unaligned" in name:
        loaded = load(path)
        assert loaded[path.stem if name.endswith("npy") else "w"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "kind", [cs.FileBacked, cs.Generic, cs.Evictable, lambda size, dtype: cs.CPU(size, dtype=dtype)]
)
def test_another_kind_is_not_mapped(tmp_path, kind):
    with pytest.raises(ValueError, match="kind"):
        load(write(tmp_path, "npy", ARRAYS[F32]), mmap=True, kind=kind)


def test_nothing_to_map(tmp_path):
    safetensors_numpy.save_file({}, tmp_path / "w.safetensors")
    assert load(tmp_path / "w.safetensors", mmap=True) == {}


def test_mapping_takes_no_memory(tmp_path):
    """64 MiB are there at once."""
    if "san" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer needs its own address space")
    path = tmp_path / "w.npy"
    np.save(path, np.zeros(1 << 24, np.int32))
    code = """
    import resource, sys
    from carrier_storage.io import load
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    w = load(sys.argv[1], mmap=True)["w"]
    assert w[5] == 0
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = int(run_child(code, args=[str(path)]).stdout)
    assert grown < 16 * 1024, f"{grown} KiB more"
