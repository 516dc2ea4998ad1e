# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`save`: what other libraries read of it, what comes back, and that a file is replaced whole or not at all."""

import errno
import os
import resource
import signal
import stat
import threading
import zipfile

import carrier_storage as cs
import numpy as np
import pytest
from carrier_storage.io import load, save

from customs import HookedCarrier
from helpers import line, many_planes, run_child, state, tensor
from kinds import F32, I32, Cell, each, is_evictable

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")

ENDINGS = ("npy", "npz", "safetensors")
every_format = pytest.mark.parametrize("ending", ENDINGS)


def others_read(path):
    """As NumPy and the safetensors library read the file: arrays by name, that of a .npy under "w"."""
    if path.suffix == ".npy":
        return {"w": np.load(path)}
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    return safetensors_numpy.load_file(path)


# ---- values ----------------------------------------------------------------------------------------------------------


@every_format
@each()
def test_every_kind_and_dtype(tmp_path, ending, cell: Cell):
    """A carrier is one axis; saving it changes nothing about it."""
    carrier, path = cell.make(8), tmp_path / f"w.{ending}"
    before = state(carrier)
    save(path, {"w": carrier})
    assert state(carrier) == before
    array = others_read(path)["w"]
    assert array.shape == (8,) and array.tolist() == cell.samples(8)
    assert array.dtype == {"Float32": "f4", "Int32": "i4", "Bool": "?"}[cell.dtype.name]
    assert load(path)["w"].tolist() == cell.samples(8)


@every_format
@each(is_evictable)
def test_evicted_values_stay_where_they_are(tmp_path, ending, cell: Cell):
    """Also seen through a Tensor, and where the secondary has more slots than the hierarchy."""
    carrier, path = cell.evicted(8), tmp_path / f"w.{ending}"
    seen = cs.Tensor(carrier, 1, cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1)))
    before = (carrier.version, carrier.primary, carrier.secondary, carrier.primary.is_released())
    for what, want in (
        (carrier, cell.samples(8)),
        (seen, [cell.samples(8)[1:4], cell.samples(8)[4:7]]),
    ):
        save(path, {"w": what})
        assert others_read(path)["w"].tolist() == want
    assert carrier.is_evicted()
    assert before == (carrier.version, carrier.primary, carrier.secondary, carrier.primary.is_released())


@every_format
def test_a_secondary_that_is_larger(tmp_path, ending):
    """What lies behind the hierarchy's own slots is not saved."""
    secondary = cs.CPU(10, dtype=I32)
    secondary.fill(9)
    carrier = cs.Evictable(cs.CPU(0, dtype=I32).new_like([1, 2, 3]), secondary)
    carrier.evict()
    save(tmp_path / f"w.{ending}", {"w": carrier})
    assert others_read(tmp_path / f"w.{ending}")["w"].tolist() == [1, 2, 3]


LAYOUTS = [
    (cs.Shape(2, 3), cs.Stride(3, 1)),
    (cs.Shape(2, 3), cs.Stride(1, 2)),
    (cs.Shape(3, 4), cs.Stride(1, 5)),
    (cs.Shape(4, 2), cs.Stride(0, 1)),
    (cs.Shape(5), cs.Stride(0)),
    (cs.Shape(6), cs.Stride(7)),
    (cs.Shape(2, 1, 3), cs.Stride(1, 50, 4)),
    (cs.Shape(2, [3, 4]), cs.Stride(12, [4, 1])),
    (cs.Shape(2, [3, [2, 2]]), cs.Stride(1, [2, [6, 20]])),
    (cs.Shape(), cs.Stride()),
    (cs.Shape(1, 1), cs.Stride(9, 9)),
]


def leaves(tree):
    return [x for mode in tree for x in (leaves(mode) if isinstance(mode, (list, tuple)) else [mode])]


@every_format
@pytest.mark.parametrize("kind", ["CPU", "FileBacked", "custom"])
@pytest.mark.parametrize(("shape", "stride"), LAYOUTS, ids=str)
def test_a_tensor_is_saved_as_it_is_seen(tmp_path, ending, kind, shape, stride):
    """Its leaf modes are the axes; transposed, gapped, repeated, nested or 0-d; and no more than it is written."""
    data = np.arange(1000, 1060, dtype="i4")
    prototype = {"CPU": cs.CPU(0, dtype=I32), "FileBacked": cs.FileBacked(dtype=I32)}.get(kind)
    carrier = HookedCarrier(data.tolist(), I32) if prototype is None else prototype.new_like(data)
    path, layout = tmp_path / f"w.{ending}", cs.Layout(shape, stride)
    extents, steps = (leaves(modes.__reduce__()[1][0]) for modes in (shape, stride))
    want = np.lib.stride_tricks.as_strided(data[2:], extents, [4 * s for s in steps])
    save(path, {"w": cs.Tensor(carrier, 2, layout)})
    got = others_read(path)["w"]
    assert got.shape == want.shape and got.dtype == want.dtype and np.array_equal(got, want)
    assert path.stat().st_size < 1000
    back = load(path)["w"]
    assert back.layout.shape == cs.Shape(*extents) and back.carrier.size() == want.size
    assert back.tolist() == want.ravel("F").tolist()


@every_format
def test_more_than_one_piece(tmp_path, ending):
    """In C order and transposed, from memory and from disk."""
    data = np.arange(3_000_000, dtype=np.int32)
    path = tmp_path / f"w.{ending}"
    for carrier in (cs.CPU(0, dtype=I32).new_like(data), cs.FileBacked(dtype=I32).new_like(data)):
        for stride, want in (
            (cs.Stride(3000, 1), data.reshape(1000, 3000)),
            (cs.Stride(1, 1000), data.reshape(3000, 1000).T),
        ):
            save(path, {"w": cs.Tensor(carrier, 0, cs.Layout(cs.Shape(1000, 3000), stride))})
            assert np.array_equal(others_read(path)["w"], want)


@every_format
def test_bits_are_kept(tmp_path, ending):
    bits = np.array([0x7FC12345, 0xFFC00001, 0x7F800000, 1, 0x80000000], np.uint32)
    path = tmp_path / f"w.{ending}"
    save(path, {"w": cs.CPU(0).new_like(bits.view(np.float32))})
    assert others_read(path)["w"].tobytes() == bits.tobytes()


def test_safetensors_are_aligned(tmp_path):
    """Whatever the order in which they are given: so they can be mapped."""
    path = tmp_path / "w.safetensors"
    mask = cs.CPU(3, dtype=cs.DType.Bool)
    save(path, {"a": mask, "b": cs.CPU(5), "c": mask, "d": cs.CPU(1, dtype=I32)})
    assert sorted(load(path, mmap=True)) == ["a", "b", "c", "d"]


@every_format
def test_the_same_values_are_the_same_bytes(tmp_path, ending):
    """A file does not tell when it was written."""
    one, two = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    save(one, {"w": cs.CPU(5)})
    save(two, {"w": cs.CPU(5)})
    assert one.read_bytes() == two.read_bytes()


# ---- names -----------------------------------------------------------------------------------------------------------

NAMES = [
    "file", "self", "arr_0", "w", "W", "a.b", "a/b", "x.npy", "with space", "\u03b1-\u5c64", "u\u0308",
    "\U0001f9ca",
    "/lead", "//two", "", ".", "..", "../up", "C:/x", "back\\slash", "new\nline", "\x01", "n" * 5000, "{}", '"', "dir/",
]  # fmt: skip


def test_every_name_comes_back_or_is_refused(tmp_path):
    """All at once and each alone."""
    given = {name: cs.CPU(0, dtype=I32).new_like([i]) for i, name in enumerate(NAMES)}
    want = {name: [i] for i, name in enumerate(NAMES)}
    for ending in ("npz", "safetensors"):
        path = tmp_path / f"names.{ending}"
        save(path, given)
        assert {name: t.tolist() for name, t in load(path).items()} == want
        assert {name: a.tolist() for name, a in others_read(path).items()} == want
        for name in NAMES:
            save(path, {name: given[name]})
            assert list(load(path)) == [name]


REFUSED = [
    ("npz", "nul\0byte"),
    ("npz", "x" * 65532),
    ("npz", "\u00e9" * 32766),
    ("npz", "\ud800"),
    ("safetensors", "\ud800"),
    ("safetensors", "__metadata__"),
]


@pytest.mark.parametrize(("ending", "name"), REFUSED, ids=lambda x: ascii(x)[:20])
def test_a_name_that_the_format_cannot_hold(tmp_path, ending, name):
    """ValueError, with the old file as it was."""
    path = tmp_path / f"w.{ending}"
    save(path, {"w": cs.CPU(1)})
    old = path.read_bytes()
    with pytest.raises(ValueError) as refusal:
        save(path, {"w": cs.CPU(2), name: cs.CPU(1)})
    assert path.name in str(refusal.value)
    assert path.read_bytes() == old and os.listdir(tmp_path) == [path.name]


def test_the_longest_name(tmp_path):
    save(tmp_path / "w.npz", {"x" * 65531: cs.CPU(1)})
    assert list(load(tmp_path / "w.npz")) == ["x" * 65531]


def test_npy_takes_one_and_forgets_its_name(tmp_path):
    save(tmp_path / "w.npy", {"other": cs.CPU(1)})
    assert list(load(tmp_path / "w.npy")) == ["w"]
    for tensors in ({}, {"a": cs.CPU(1), "b": cs.CPU(1)}):
        with pytest.raises(ValueError, match="one array"):
            save(tmp_path / "w.npy", tensors)


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_nothing_is_a_file_too(tmp_path, ending):
    save(tmp_path / f"w.{ending}", {})
    assert load(tmp_path / f"w.{ending}") == {} == others_read(tmp_path / f"w.{ending}")


# ---- refusals --------------------------------------------------------------------------------------------------------


class Failing(cs.Carrier):
    """Fails in the middle of being read."""

    class Failure(Exception):  # noqa: N818
        pass

    def _size(self):
        return 5000

    def _dtype(self):
        return I32

    def _get_value(self, index, /):
        if index == 4000:
            raise Failing.Failure
        return index


def released():
    carrier = cs.CPU(3)
    carrier.release()
    return carrier


def released_tensor():
    carrier = cs.CPU(3)
    seen = tensor(carrier)
    carrier.release()
    return seen


def cut_file():
    carrier = cs.FileBacked(dtype=I32).new_like(range(5000))
    os.truncate(carrier.path, 8000)
    return carrier


def cut_evicted():
    carrier = cs.Evictable(cs.CPU(5000), cs.FileBacked(dtype=F32))
    carrier.evict()
    os.truncate(carrier.secondary.path, 8000)
    return carrier


class Unsaved(HookedCarrier):
    """Of a dtype that no file holds."""

    def __init__(self):
        super().__init__([1, 2], cs.DType.Float64)


BAD = {
    "text": (lambda: "text", TypeError),
    "None": (lambda: None, TypeError),
    "a list": (lambda: [1.0, 2.0], TypeError),
    "an array": (lambda: np.ones(3, "f4"), TypeError),
    "a class": (lambda: cs.CPU, TypeError),
    "released": (released, RuntimeError),
    "released, by a Tensor": (released_tensor, RuntimeError),
    "several subtensors": (many_planes, ValueError),
    "no elements": (lambda: cs.CPU(0), ValueError),
    "another dtype": (Unsaved, ValueError),
    "fails": (Failing, Failing.Failure),
    "fails, by a Tensor": (lambda: tensor(Failing()), Failing.Failure),
    "cut file": (cut_file, OSError),
    "cut file, by a Tensor": (lambda: tensor(cut_file()), OSError),
    "cut file of a hierarchy": (cut_evicted, OSError),
    "many axes": (
        lambda: cs.Tensor(cs.CPU(1), 0, cs.Layout(cs.Shape(*[1] * 65), cs.Stride(*[1] * 65))),
        ValueError,
    ),
}


@every_format
@pytest.mark.parametrize("name", BAD)
def test_a_save_that_fails_changes_nothing(tmp_path, ending, name):
    """The old file stays as it was, and no other appears."""
    make, error = BAD[name]
    path = tmp_path / f"state.{ending}"
    save(path, {"w": cs.CPU(4)})
    old = path.read_bytes()
    bad = {"evil": make()} if ending == "npy" else {"w": cs.CPU(1 << 20), "evil": make(), "x": cs.CPU(3)}
    with pytest.raises(error) as refusal:
        save(path, bad)
    if error in (TypeError, ValueError, RuntimeError):
        assert path.name in str(refusal.value) and "evil" in str(refusal.value)
    assert path.read_bytes() == old and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("tensors", [None, [], [("w", 1)], cs.CPU(1), "w"], ids=repr)
def test_tensors_are_a_mapping(tmp_path, tensors):
    with pytest.raises(TypeError):
        save(tmp_path / "w.npz", tensors)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [1, None, b"w", ("w",)], ids=repr)
def test_a_name_is_a_str(tmp_path, name):
    with pytest.raises(TypeError):
        save(tmp_path / "w.npz", {name: cs.CPU(1)})
    assert os.listdir(tmp_path) == []


def test_paths(tmp_path):
    """Unknown endings are ValueErrors, what the system refuses OSErrors."""
    carrier = {"w": cs.CPU(1)}
    for name in ("w", "w.txt", "w.npy.gz", ".npy"):
        with pytest.raises(ValueError, match="unknown kind"):
            save(tmp_path / name, carrier)
    with pytest.raises(TypeError):
        save(3, carrier)
    with pytest.raises(FileNotFoundError) as refusal:
        save(tmp_path / "none" / "w.npy", carrier)
    assert refusal.value.filename == str(tmp_path / "none" / "w.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError):
        save(tmp_path / "folder.npy", carrier)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(ValueError, match="not a regular file"):
        save(tmp_path / "pipe.npy", carrier)
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    with pytest.raises(OSError, match="loop"):
        save(tmp_path / "loop.npy", carrier)
    assert sorted(os.listdir(tmp_path)) == ["folder.npy", "loop.npy", "pipe.npy"]
    save(os.fsencode(tmp_path / "w.NPZ"), carrier)
    assert list(load(str(tmp_path / "w.NPZ"))) == ["w"]


def test_a_write_in_between_is_noticed(tmp_path):
    """A file is never half of one state and half of another."""

    class Written(HookedCarrier):
        def _get_value(self, index, /):
            if index == 5:
                target[0] = 1.0
            return super()._get_value(index)

    target = cs.CPU(3)
    carrier = Written([0.0] * 9, F32)
    for tensors in ({"b": target, "a": carrier}, {"a": carrier, "b": target}):
        with pytest.raises(RuntimeError, match="'b'.*written while"):
            save(tmp_path / "w.npz", tensors)
    assert os.listdir(tmp_path) == []


def test_moves_in_between_do_not_matter(tmp_path):
    """Another thread evicts and promotes all the time."""
    carrier = cs.Evictable(cs.CPU(0, dtype=I32).new_like(range(5000)), cs.FileBacked(dtype=I32))
    rows = cs.Tensor(carrier, 0, cs.Layout(cs.Shape(50, 100), cs.Stride(100, 1)))
    stop = threading.Event()

    def move():
        while not stop.is_set():
            carrier.evict()
            carrier.promote()

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(20):
            for what in (carrier, rows):
                save(tmp_path / "w.npy", {"w": what})
                assert np.load(tmp_path / "w.npy").ravel().tolist() == list(range(5000))
    finally:
        stop.set()
        mover.join()


# ---- the file --------------------------------------------------------------------------------------------------------


@every_format
def test_a_full_disk(tmp_path, ending):
    """OSError, whether it fills at the start, in the values or in the last bytes."""
    path = tmp_path / f"w.{ending}"
    save(path, {"w": cs.CPU(2)})
    old = path.read_bytes()
    big = cs.CPU(1 << 18)
    whole = (1 << 20) + 100
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for limit in (0, 10, 300 * 1024, (1 << 20) - 4, whole if ending == "npz" else 1 << 20):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            try:
                with pytest.raises(OSError) as refusal:
                    save(path, {"w": big})
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            assert refusal.value.errno == errno.EFBIG and refusal.value.filename == str(path)
            assert path.read_bytes() == old and os.listdir(tmp_path) == [path.name]
    finally:
        signal.signal(signal.SIGXFSZ, handler)
    save(path, {"w": big})
    assert load(path)["w"].size() == 1 << 18


@every_format
@pytest.mark.parametrize("call", ["fsync", "fchmod", "replace", "open"])
def test_every_system_call_may_fail(tmp_path, monkeypatch, ending, call):
    """The old file stays, nothing else does, and no descriptor is left open."""
    path = tmp_path / f"w.{ending}"
    save(path, {"w": cs.CPU(2)})
    old, real = path.read_bytes(), getattr(os, call)

    def fail(*arguments, **options):
        if call == "open" and "tmp" not in str(arguments[0]):
            return real(*arguments, **options)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = open_files()
    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            save(path, {"w": cs.CPU(1000)})
    assert path.read_bytes() == old and os.listdir(tmp_path) == [path.name] and open_files() == before
    save(path, {"w": cs.CPU(3)})
    assert load(path)["w"].size() == 3 and open_files() == before


def open_files():
    return sorted(os.listdir("/dev/fd"))


@pytest.fixture
def umask():
    old = os.umask(0o027)
    yield 0o027
    os.umask(old)


@every_format
def test_permissions(tmp_path, ending, umask):
    """A new file has those of any new file, a replaced one keeps its own."""
    path = tmp_path / f"w.{ending}"
    save(path, {"w": cs.CPU(1)})
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    for mode in (0o600, 0o664, 0o755):
        path.chmod(mode)
        save(path, {"w": cs.CPU(1)})
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_owner_is_kept(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = tmp_path / "w.npy"
    path.touch()
    os.chown(path, 12345, 23456)
    save(path, {"w": cs.CPU(1)})
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_file_that_may_not_be_written(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    path = tmp_path / "w.npy"
    save(path, {"w": cs.CPU(1)})
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        save(path, {"w": cs.CPU(2)})
    assert load(path)["w"].size() == 1


def test_symbolic_links(tmp_path):
    """What a link leads to is replaced, also where that is not there yet; the link stays."""
    (tmp_path / "data").mkdir()
    link = tmp_path / "w.npz"
    link.symlink_to("data/real.npz")
    for size in (3, 4):
        save(link, {"w": cs.CPU(size)})
        assert link.is_symlink() and load(tmp_path / "data" / "real.npz")["w"].size() == size
    assert os.listdir(tmp_path / "data") == ["real.npz"] and sorted(os.listdir(tmp_path)) == ["data", "w.npz"]


@every_format
def test_readers_see_the_old_file_or_the_new_one(tmp_path, ending):
    """At every moment, while it is saved again and again."""
    path, stop, seen = tmp_path / f"w.{ending}", threading.Event(), set()
    save(path, {"w": cs.CPU(100)})

    def read():
        while not stop.is_set():
            loaded = load(path)["w"]
            seen.add((loaded.size(), loaded[0], loaded[loaded.size() - 1]))

    reader = threading.Thread(target=read)
    reader.start()
    for size in (200, 100) * 20:
        carrier = cs.CPU(size)
        carrier.fill(size)
        save(path, {"w": carrier})
    stop.set()
    reader.join()
    assert seen <= {(100, 0.0, 0.0), (100, 100.0, 100.0), (200, 200.0, 200.0)}


@every_format
def test_over_the_file_that_is_mapped(tmp_path, ending):
    """Loaded Tensors keep their values, and so does the new file, longer or shorter than the old one."""
    path, want = tmp_path / f"w.{ending}", list(range(20000))
    for mmap in {False, ending != "npz"}:
        save(path, {"w": cs.CPU(0, dtype=I32).new_like(want)})
        loaded = load(path, mmap=mmap)["w"]
        save(path, {"w": loaded})
        save(path, {"w": cs.CPU(2)})
        assert others_read(path)["w"].tolist() == [0.0, 0.0]
        save(path, {"w": cs.Tensor(loaded.carrier, 10000, line(10000))})
        assert others_read(path)["w"].tolist() == want[10000:] and loaded.tolist() == want
        path.unlink()
        assert loaded.tolist() == want


def test_saving_from_files_takes_no_memory_for_the_payload(tmp_path):
    """64 MiB, from a file and from an evicted hierarchy."""
    if "san" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer keeps freed memory")
    code = """
    import resource, sys
    import carrier_storage as cs
    from carrier_storage.io import save
    import safetensors
    lower = cs.FileBacked(dtype=cs.DType.Float32)
    lower.grow(1 << 24)
    upper = cs.Evictable(lower.allocate_like(1 << 24), cs.FileBacked(dtype=cs.DType.Float32))
    upper.evict()
    rows = cs.Tensor(upper, 0, cs.Layout(cs.Shape(1 << 12, 1 << 12), cs.Stride(1 << 12, 1)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for ending, what in (("npy", lower), ("npz", upper), ("safetensors", rows)):
        save(f"{sys.argv[1]}/w.{ending}", {"w": what})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = int(run_child(code, args=[str(tmp_path)]).stdout)
    assert grown < 40 * 1024, f"{grown} KiB more"


def test_interrupted(tmp_path):
    """Ctrl-C in the middle leaves the old file and nothing else."""
    path = tmp_path / "w.npz"
    save(path, {"w": cs.CPU(3)})

    class Interrupting(HookedCarrier):
        def _get_value(self, index, /):
            if index == 3:
                signal.raise_signal(signal.SIGINT)
            return super()._get_value(index)

    with pytest.raises(KeyboardInterrupt):
        save(path, {"a": cs.CPU(1 << 20), "w": Interrupting([1.0] * 9, F32)})
    assert os.listdir(tmp_path) == ["w.npz"] and load(path)["w"].size() == 3


def test_members_can_be_unpacked(tmp_path):
    """By tools that take permissions and dates from the archive."""
    save(tmp_path / "w.npz", {"a/b": cs.CPU(1)})
    with zipfile.ZipFile(tmp_path / "w.npz") as archive:
        assert archive.testzip() is None
        (info,) = archive.infolist()
        assert info.filename == "a/b.npy" and info.external_attr >> 16 == 0o600
