# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`load`: what comes out of files of every format, into every kind, and what is converted on the way."""

import os
import subprocess
import sys

import carrier_storage as cs
import numpy as np
import pytest
from carrier_storage.io import load

from customs import ZEROS, HookedCarrier
from helpers import run_child, values
from kinds import BOOL, CONCRETE, F32, I32, metal_absence

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")

NUMPY = {F32: np.dtype("f4"), I32: np.dtype("i4"), BOOL: np.dtype("?")}
FORMATS = ("npy", "npz", "packed", "safetensors")


def write(folder, form, **arrays):
    """The file's path. `packed` is a compressed .npz; a .npy is named for its only array."""
    if form == "npy":
        ((name, array),) = arrays.items()
        path = folder / f"{name}.npy"
        np.save(path, array)
        return path
    path = folder / ("arrays.safetensors" if form == "safetensors" else "arrays.npz")
    if form == "safetensors":
        safetensors_numpy.save_file(
            {k: np.ascontiguousarray(a).reshape(a.shape) for k, a in arrays.items()}, path
        )
    else:
        (np.savez_compressed if form == "packed" else np.savez)(path, **arrays)
    return path


def samples(dtype, count=24):
    numbers = np.random.default_rng(3).integers(0, 2**32, count, dtype=np.uint32)
    if dtype is F32:
        return (numbers & 0xBFFFFFFF).view(np.float32)  # any finite value
    return numbers.view(np.int32) if dtype is I32 else numbers % 2 == 0


MAKERS = {
    "CPU": cs.CPU,
    "Generic": cs.Generic,
    "FileBacked": cs.FileBacked,
    "Evictable": cs.Evictable,
    "Metal": cs.Metal,
    "custom": lambda size, dtype: HookedCarrier([ZEROS[dtype]] * size, dtype),
    "nested": lambda size, dtype: cs.Evictable(
        cs.Evictable(cs.CPU(size, dtype=dtype), cs.CPU(0, dtype=dtype)), cs.FileBacked(dtype=dtype)
    ),
}
BY_KIND = [
    pytest.param(kind, dtype, id=f"{kind}-{dtype.name}")
    for kind in MAKERS
    for dtype in CONCRETE
    if not (dtype is BOOL and kind in ("FileBacked", "Evictable", "nested"))
    if not (kind == "Metal" and metal_absence())  # one skip with its reason: test_r13_metal.py
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("kind", "dtype"), BY_KIND)
def test_every_format_loads_into_every_kind(tmp_path, form, kind, dtype):
    """The Tensor has the array's shape, its carrier the class that was asked for, and the values are exact."""
    array = samples(dtype).reshape(2, 3, 4)
    ((name, tensor),) = load(write(tmp_path, form, w=array), kind=MAKERS[kind]).items()
    assert name == "w" and tensor.offset == 0
    assert tensor.layout.shape == cs.Shape(2, 3, 4) and tensor.dtype() is dtype
    assert tensor.carrier.size() == 24 and tensor.is_mutable() and not tensor.carrier.is_owned()
    if isinstance(MAKERS[kind], type):
        assert type(tensor.carrier) is MAKERS[kind]
    assert [tensor[i, j, k] for i in range(2) for j in range(3) for k in range(4)] == array.ravel().tolist()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1, 5), (2, 1, 3), (3, 4, 1)], ids=str)
def test_every_shape(tmp_path, form, shape):
    """0-d is Shape(), with one slot; extents of one stay."""
    array = samples(I32, int(np.prod(shape))).reshape(shape)
    tensor = load(write(tmp_path, form, w=array))["w"]
    assert tensor.layout.shape == cs.Shape(*shape) and tensor.size() == array.size
    assert tensor.tolist() == array.ravel("F").tolist()


@pytest.mark.parametrize("form", ["npy", "npz", "packed"])
def test_fortran_order(tmp_path, form):
    """The values stay in the file's order; the layout says which is which."""
    array = np.asfortranarray(samples(F32).reshape(2, 3, 4))
    tensor = load(write(tmp_path, form, w=array))["w"]
    assert tensor.tolist() == array.ravel("F").tolist() == values(tensor.carrier)


@pytest.mark.parametrize("form", ["npy", "npz"])
@pytest.mark.parametrize("dtype", [F32, I32], ids=str)
@pytest.mark.parametrize("kind", ["CPU", "FileBacked"])
def test_the_order_of_bytes_is_no_conversion(tmp_path, form, dtype, kind):
    """Big-endian float32 and int32 are float32 and int32."""
    array = samples(dtype)
    path = write(tmp_path, form, w=array.astype(NUMPY[dtype].newbyteorder(">")))
    assert load(path, kind=MAKERS[kind])["w"].tolist() == array.tolist()


def test_special_values_are_kept(tmp_path):
    """NaN payloads, infinities, subnormals and the sign of zero."""
    bits = np.array([0x7FC12345, 0xFFC00001, 0x7F800000, 0xFF800000, 1, 0x80000000], np.uint32)
    for form in FORMATS:
        for kind in ("CPU", "FileBacked", "Generic"):
            tensor = load(write(tmp_path, form, w=bits.view(np.float32)), kind=MAKERS[kind])["w"]
            assert bytes(tensor.carrier.read()) == bits.tobytes(), (form, kind)


def test_any_byte_of_a_bool_but_zero_is_true(tmp_path):
    raw = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    for form in FORMATS:
        tensor = load(write(tmp_path, form, w=raw))["w"]
        assert tensor.tolist() == [False, True, True, True]
        assert bytes(tensor.read()) == b"\0\1\1\1"


# ---- conversion ------------------------------------------------------------------------------------------------------

INTEGERS = ["i1", "i2", "i8", "u1", "u2", "u4", "u8", ">i2", ">u8"]
FLOATS = ["f2", "f8", ">f8"]


@pytest.mark.parametrize(
    ("form", "code"),
    [(f, c) for f in FORMATS for c in INTEGERS + FLOATS if not (f == "safetensors" and c[0] == ">")],
)
def test_conversion_is_asked_for(tmp_path, form, code):
    """Other integers become Int32, other floats Float32, and only with `convert=True`."""
    array = np.array([1, 2, 100], code)
    path = write(tmp_path, form, w=array)
    with pytest.raises(ValueError, match=r"(?s)convert=True") as refusal:
        load(path)
    assert path.name in str(refusal.value) and "w" in str(refusal.value)
    tensor = load(path, convert=True)["w"]
    assert tensor.dtype() is (F32 if code[-2] == "f" else I32)
    assert tensor.tolist() == [1, 2, 100]


def test_floats_are_rounded_once_to_the_nearest(tmp_path):
    """Section C of the contract: beyond the range of binary32 is infinity."""
    numbers = [
        0.1,
        1 / 3,
        1e300,
        -1e300,
        5e-324,
        np.inf,
        1 + 2**-24,
        1 + 2**-23 + 2**-24,
        3.4028235677973366e38,
    ]
    path = write(tmp_path, "npy", w=np.array(numbers))
    with np.errstate(over="ignore"):
        rounded = np.float32(numbers).tolist()
    assert load(path, convert=True)["w"].tolist() == rounded
    assert load(path, convert=True)["w"].tolist() == list(cs.Generic(numbers, dtype=F32))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("code", "value"),
    [("i8", 2**31), ("i8", -(2**31) - 1), ("u4", 2**32 - 1), ("u8", 2**64 - 1), ("i8", -(2**63))],
)
def test_an_integer_that_does_not_fit(tmp_path, form, code, value):
    """OverflowError names file, entry, value and index; what was made for the load is released."""
    array = np.zeros((3, 700_001), code)
    array[2, 700_000] = value
    path = write(tmp_path, form, big=array)
    made = []

    def kind(size, dtype):
        made.append(cs.FileBacked(dtype=dtype).allocate_like(size))
        return made[-1]

    with pytest.raises(OverflowError) as refusal:
        load(path, kind=kind, convert=True)
    for part in (path.name, "big", str(value), "index 2100002"):
        assert part in str(refusal.value)
    assert [c.is_released() for c in made] == [True]


def test_the_ends_of_int32_fit(tmp_path):
    path = write(tmp_path, "npy", w=np.array([-(2**31), 2**31 - 1], "i8"))
    assert load(path, convert=True)["w"].tolist() == [-(2**31), 2**31 - 1]


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["npz", "packed", "safetensors"])
def test_names_choose(tmp_path, form):
    """Only what is asked for is loaded, so what else is there may be of any dtype. The order is the file's."""
    path = write(tmp_path, form, a=samples(F32), b=np.ones(3), c=samples(I32), d=samples(BOOL))
    assert list(load(path, names=["c", "a"])) == ["a", "c"]
    assert list(load(path, names=iter(["d"]))) == ["d"]
    assert load(path, names=()) == {}
    with pytest.raises(ValueError, match="'b'"):
        load(path, names=["a", "b"])
    with pytest.raises(ValueError, match=r"no entry 'x'") as refusal:
        load(path, names=["a", "x"])
    assert path.name in str(refusal.value)


def test_a_npy_file_goes_by_its_stem(tmp_path):
    np.save(tmp_path / "weights.v2.npy", samples(I32))
    assert list(load(tmp_path / "weights.v2.npy")) == ["weights.v2"]
    assert list(load(tmp_path / "weights.v2.npy", names=["weights.v2"])) == ["weights.v2"]
    with pytest.raises(ValueError, match="'weights'"):
        load(tmp_path / "weights.v2.npy", names=["weights"])


@pytest.mark.parametrize("names", ["w", b"w", [1], ["w", None], 7])
def test_names_are_names(tmp_path, names):
    """A str is one name, not several of one letter each."""
    with pytest.raises(TypeError):
        load(write(tmp_path, "npz", w=samples(I32)), names=names)


# ---- kind ------------------------------------------------------------------------------------------------------------


class Recorder:
    """A kind that remembers what it gave."""

    def __init__(self, give):
        self.give, self.given = give, []

    def __call__(self, size, dtype):
        self.given.append(self.give(size, dtype))
        return self.given[-1]


def released(size, dtype):
    carrier = cs.CPU(size, dtype=dtype)
    carrier.release()
    return carrier


def evicted(size, dtype):
    carrier = cs.Evictable(cs.CPU(size, dtype=dtype), cs.CPU(0, dtype=dtype))
    carrier.evict()
    return carrier


BAD_KINDS = {
    "nothing": (lambda size, dtype: None, TypeError),
    "a list": (lambda size, dtype: [0] * size, TypeError),
    "a class": (lambda size, dtype: cs.CPU, TypeError),
    "too small": (lambda size, dtype: cs.CPU(size - 1, dtype=dtype), ValueError),
    "too large": (lambda size, dtype: cs.CPU(size + 1, dtype=dtype), ValueError),
    "another dtype": (lambda size, dtype: cs.CPU(size, dtype=F32), ValueError),
    "released": (released, RuntimeError),
    "evicted": (evicted, RuntimeError),
    "immutable": (lambda size, dtype: cs.CPU(size, dtype=dtype, mutable=False), RuntimeError),
}


@pytest.mark.parametrize("name", BAD_KINDS)
def test_what_a_callable_gives_is_checked(tmp_path, name):
    """The error names the file and the entry; a carrier given before is released."""
    give, error = BAD_KINDS[name]
    path = write(tmp_path, "npz", first=samples(I32), second=samples(I32, 5))
    good = Recorder(lambda size, dtype: cs.CPU(size, dtype=dtype))
    with pytest.raises(error) as refusal:
        load(path, kind=lambda size, dtype: (give if size == 5 else good)(size, dtype))
    assert path.name in str(refusal.value) and "second" in str(refusal.value)
    assert [c.is_released() for c in good.given] == [True]


def test_one_carrier_is_not_given_twice(tmp_path):
    path = write(tmp_path, "npz", a=samples(I32, 5), b=samples(I32, 5))
    carrier = cs.CPU(5, dtype=I32)
    with pytest.raises(ValueError, match="'b'.*same carrier"):
        load(path, kind=lambda size, dtype: carrier)


@pytest.mark.parametrize("kind", [None, "CPU", 3, cs.CPU(1)], ids=repr)
def test_kind_is_a_class_or_a_callable(tmp_path, kind):
    with pytest.raises(TypeError, match="kind"):
        load(write(tmp_path, "npy", w=samples(I32)), kind=kind)


def test_an_error_of_the_callable_is_its_own(tmp_path):
    class OwnError(Exception):
        pass

    def fail(size, dtype):
        raise OwnError

    with pytest.raises(OwnError):
        load(write(tmp_path, "npy", w=samples(I32)), kind=fail)


def test_a_kind_that_cannot_hold_the_dtype_makes_nothing(tmp_path):
    """Before a value is read, and with nothing left in the session directory."""
    path = write(tmp_path, "npz", a=samples(I32), mask=samples(BOOL))
    before = cs._core._live()["file_blocks"]
    with pytest.raises(ValueError, match="'mask'.*FileBacked"):
        load(path, kind=cs.FileBacked)
    assert cs._core._live()["file_blocks"] <= before


# ---- progress, memory, arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "mmap"), [*((form, False) for form in FORMATS), ("npy", True), ("safetensors", True)]
)
def test_progress_counts_bytes(tmp_path, form, mmap):
    """(done, total) in bytes of the file, growing, and complete at the end."""
    arrays = {"w": np.zeros(1_500_000, np.int32)}
    if form != "npy":
        arrays["mask"] = np.zeros(100, bool)
    total = sum(a.nbytes for a in arrays.values())
    calls = []
    load(write(tmp_path, form, **arrays), mmap=mmap, progress=lambda *c: calls.append(c))
    assert calls[-1] == (total, total) and len(calls) > (0 if mmap else 1)
    assert [c[1] for c in calls] == [total] * len(calls)
    assert sorted({c[0] for c in calls}) == [c[0] for c in calls]


def test_progress_that_raises_ends_the_load(tmp_path):
    """With everything released."""
    made = Recorder(lambda size, dtype: cs.FileBacked(dtype=dtype).allocate_like(size))

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(write(tmp_path, "npz", a=samples(I32), b=samples(F32)), kind=made, progress=stop)
    assert [c.is_released() for c in made.given] == [True, True]


def test_loading_into_files_takes_no_memory_for_the_payload(tmp_path):
    """64 MiB go through pieces of a few."""
    array = np.zeros(1 << 24, np.int32)
    array[[0, -1]] = 7
    paths = [str(write(tmp_path, form, w=array)) for form in ("npy", "npz", "safetensors")]
    del array
    code = """
    import resource, sys
    import carrier_storage as cs
    from carrier_storage.io import load
    import safetensors
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in sys.argv[1:]:
        t = load(path, kind=cs.FileBacked)["w"]
        assert (t[0], t[1], t[(1 << 24) - 1]) == (7, 0, 7)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    if "san" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer keeps freed memory")
    grown = int(run_child(code, args=paths).stdout)
    assert grown < 40 * 1024, f"{grown} KiB more"


@pytest.mark.parametrize(
    "options",
    [{"mmap": 1}, {"mmap": None}, {"convert": 1}, {"convert": "yes"}, {"progress": 3}, {"unknown": 1}],
    ids=str,
)
def test_options_have_their_types(tmp_path, options):
    with pytest.raises(TypeError):
        load(write(tmp_path, "npy", w=samples(I32)), **options)


@pytest.mark.parametrize("path", [3, None, ["a.npy"]], ids=repr)
def test_a_path_is_a_path(path):
    with pytest.raises(TypeError):
        load(path)


def test_paths_of_every_type(tmp_path):
    path = write(tmp_path, "npy", w=samples(I32))
    for given in (path, str(path), os.fsencode(path)):
        assert load(given)["w"].tolist() == samples(I32).tolist()
    upper = path.rename(path.with_suffix(".NPY"))
    assert list(load(upper)) == ["w"]


def test_what_the_system_refuses_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError) as refusal:
        load(tmp_path / "none.npy")
    assert refusal.value.filename.endswith("none.npy")
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    with pytest.raises(OSError, match="loop"):
        load(tmp_path / "loop.npz")


def test_importing_the_package_imports_nothing_more():
    """NumPy and safetensors come with `carrier_storage.io`, dask never."""
    code = (
        "import sys, carrier_storage\n"
        "assert not {'numpy', 'safetensors', 'dask', 'carrier_storage.io'} & set(sys.modules)\n"
        "import carrier_storage.io\n"
        "assert 'dask' not in sys.modules and 'safetensors' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_safetensors_library(tmp_path):
    """An ImportError says what to install, before anything is done; the other formats need nothing."""
    path = write(tmp_path, "safetensors", w=samples(I32))
    code = """
    import sys
    sys.modules["safetensors"] = None
    import carrier_storage as cs
    from carrier_storage.io import load, save
    folder = sys.argv[1]
    reading = lambda: load(f"{folder}/arrays.safetensors")
    writing = lambda: save(f"{folder}/new.safetensors", {"w": cs.CPU(1)})
    for call in (reading, writing):
        try:
            call()
        except ImportError as error:
            assert "carrier-storage[files]" in str(error) and ".safetensors" in str(error)
        else:
            sys.exit("no error")
    save(f"{folder}/w.npz", {"w": cs.CPU(1)})
    assert load(f"{folder}/w.npz")["w"].tolist() == [0.0]
    """
    run_child(code, args=[str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == [path.name, "w.npz"]
