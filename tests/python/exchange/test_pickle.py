# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, pickle: what arrives, from any state, by any protocol; and what is refused."""

import array
import gc
import itertools
import pickle
import struct
import threading

import carrier_storage as cs
import pytest
from carrier_storage import _core

from customs import HookedCarrier, LeastCarrier
from exchange.twins import PICKLES, WAYS, Travelling, check_twin, make_travelling, tree
from helpers import compound, line, named, run_child, state
from kinds import BOOL, F32, I32, Cell, each, each_kind, hierarchy, is_evictable, make_cpu, metal_absence

np = pytest.importorskip("numpy")


def shipped(kind):
    return not kind.custom


ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each(shipped)
@pytest.mark.parametrize("mutable", [True, False], ids=["mutable", "immutable"])
def test_a_twin(cell: Cell, mutable):
    """Whatever the protocol: the same kind, dtype, values and intrinsic mutability; the original is untouched."""
    values = cell.samples(9)
    c = cell.make(values, mutable=mutable)
    if mutable:
        c[0] = c[0]  # the version does not travel
    before = state(c)
    for name, way in WAYS.items():
        twin = way(c)
        check_twin(twin, c, values, mutable=mutable)
        if mutable:
            twin.fill(cell.good)
            assert twin.version == 1, name
    assert state(c) == before


@each(lambda kind: is_evictable(kind) and not kind.custom)
@pytest.mark.parametrize("mutable", [True, False], ids=["mutable", "immutable"])
def test_the_twin_of_an_evicted_hierarchy(cell: Cell, mutable):
    """Read from the secondary, where it stays; the twin is promoted and a hierarchy in every respect."""
    values = cell.samples(9)
    h = cell.evicted(values, mutable=mutable)
    before = state(h)
    for way in WAYS.values():
        twin = way(h)
        check_twin(twin, h, values, mutable=mutable)
        twin.evict()
        twin.promote()
        assert repr(twin.tolist()) == repr(values)
        assert state(h) == before
    h.promote()
    assert repr(h.tolist()) == repr(values) and h.version == 0


@each(shipped)
def test_an_owned_carrier_is_copied(cell: Cell):
    """And the twin is free."""
    c = cell.make(3)
    token = c.claim()
    for way in WAYS.values():
        check_twin(way(c), c, cell.samples(3))
    with token.access() as inside:
        check_twin(WAYS["frames"](inside), c, cell.samples(3))
    assert c.is_owned() and not c.is_mutable()


@each(shipped)
@pytest.mark.parametrize("mutable", [True, False], ids=["mutable", "immutable"])
def test_a_released_carrier_arrives_released(cell: Cell, mutable):
    """With dtype, kinds and mutability, and good as a prototype."""
    c = cell.released(mutable=mutable)
    for way in WAYS.values():
        twin = way(c)
        assert tree(twin) == tree(c) and twin.dtype() is c.dtype()
        assert (twin.is_released(), twin.size(), twin.version) == (True, 0, 0)
        assert twin.is_mutable() is mutable and not twin.is_owned()
        with pytest.raises(RuntimeError):
            twin.tolist()
        assert twin.new_like([cell.good]).tolist() == [cell.good]


@each(shipped)
def test_an_empty_carrier(cell: Cell):
    c = cell.make([])
    for way in WAYS.values():
        check_twin(way(c), c, [])


@each(lambda kind: kind.name in {"cpu", "generic", "metal", "file_cpu", "cpu_file", "nested_secondary"})
def test_a_running_edit_does_not_hinder(cell: Cell):
    c = cell.make(3)
    with c.edit() as a:
        a[0] = a[1]
        for way in WAYS.values():
            assert way(c).is_mutable() and way(c).size() == 3
    check_twin(WAYS["bytes"](c), c, c.tolist())


@ways
def test_every_bit_travels(way):
    """NaN payloads, and foreign truth bytes as 1."""
    patterns = array.array("I", [0x7FC12345, 0xFFC54321, 0x80000000, 1])
    twin = way(cs.CPU(4, patterns.buffer_info()[0]))
    assert bytes(twin.read()) == patterns.tobytes()
    truths = array.array("B", [0, 1, 2, 255])
    twin = way(cs.CPU(4, truths.buffer_info()[0], dtype=BOOL))
    assert bytes(memoryview(twin)) == b"\0\1\1\1"


@ways
def test_wrapped_memory_arrives_as_memory_of_its_own(way):
    memory = array.array("i", [1, 2, 3])
    c = cs.CPU(3, memory.buffer_info()[0], dtype=I32)
    twin = way(c)
    twin[0] = 9
    memory[1] = 8
    assert twin.tolist() == [9, 2, 3] and c.tolist() == [1, 8, 3]
    assert twin.pointer() != c.pointer()


@ways
def test_a_secondary_with_room_to_spare(way):
    """Only the hierarchy's slots travel."""
    h = cs.Evictable(make_cpu([1, 2, 3], I32), cs.CPU(10, dtype=I32))
    h.evict()
    assert h.secondary.size() == 10
    check_twin(way(h), h, [1, 2, 3])


# ---- the payload ------------------------------------------------------------------------------------------


def frames_of(thing):
    frames = []
    head = pickle.dumps(thing, 5, buffer_callback=frames.append)
    return head, frames


@each(lambda kind: not kind.custom and kind.name not in {"file", "file_cpu"})
def test_memory_is_not_copied(cell: Cell):
    """Protocol 5: the frame is the carrier's own memory, read-only, and outlives it."""
    n = 30_000
    c = cell.make(n)
    head, frames = frames_of(c)
    assert len(head) < 1000 and len(frames) == 1
    address = np.frombuffer(frames[0].raw(), np.uint8).ctypes.data
    assert address == c.numpy().ctypes.data
    assert memoryview(frames[0]).readonly and memoryview(frames[0]).nbytes == n * frames[0].raw().itemsize * (
        1 if cell.dtype is BOOL else 4
    )
    c.release()
    twin = pickle.loads(head, buffers=frames)
    assert twin.tolist() == cell.samples(n)


@each(lambda kind: kind.name in {"cpu_cpu", "cpu_file", "file", "file_cpu", "nested_primary"}, dtypes=(I32,))
def test_the_payload_is_out_of_band(cell: Cell):
    """Whatever the medium, evicted too."""
    n = 30_000
    c = cell.make(n)
    for _ in range(2):
        head, frames = frames_of(c)
        assert len(head) < 1000 and sum(memoryview(f).nbytes for f in frames) == 4 * n
        assert pickle.loads(head, buffers=frames).tolist() == cell.samples(n)
        if cell.kind.evictable:
            c.evict()


def test_files_travel_in_pieces():
    """At most 32 MiB each, by every protocol."""
    n = 20_000_000
    f = cs.FileBacked(dtype=I32)
    f.grow(n)
    f.write(9_000_000, range(100))
    f[n - 1] = -1
    head, frames = frames_of(f)
    sizes = [memoryview(frame).nbytes for frame in frames]
    assert max(sizes) <= 32 << 20 and len(sizes) == 3 and sum(sizes) == 4 * n
    twin = pickle.loads(head, buffers=frames)
    assert twin.read(9_000_000, 9_000_101).tolist() == [*range(100), 0] and twin[n - 1] == -1
    function, arguments = f.__reduce_ex__(2)
    assert [len(piece) for piece in arguments[4:]] == sizes
    assert {type(piece) for piece in arguments[4:]} == {bytes}
    assert function(*arguments)[9_000_099] == 99


def test_frames_are_not_held():
    """Loading copies out of them, whatever they are."""
    c = make_cpu(range(1000), I32)
    head, frames = frames_of(c)
    given = bytearray(frames[0].raw())
    twin = pickle.loads(head, buffers=[given])
    given[:4] = b"\xff" * 4
    given.append(0)
    twin[1] = -5
    assert twin.tolist() == [0, -5, *range(2, 1000)] and c[1] == 1


def test_frames_may_be_cut_anew():
    """Any number of buffers of whole slots will do."""
    c = make_cpu(range(10), I32)
    function, arguments = c.__reduce_ex__(2)
    raw = arguments[4]
    for cuts in ([0, 40], [0, 4, 40], [0, 0, 12, 40, 40], [*range(0, 44, 4)]):
        pieces = [raw[a:b] for a, b in itertools.pairwise(cuts)]
        assert function(*arguments[:4], *pieces).tolist() == list(range(10))


@each(shipped)
def test_a_size_that_does_not_match_is_a_value_error(cell: Cell):
    """And leaves nothing behind: neither files nor memory."""
    head, frames = frames_of(cell.make(100))
    raw = bytes(frames[0].raw())
    gc.collect()
    before = _core._live()
    width = len(raw) // 100
    for bad in (raw[:-width], raw + bytes(width), b"", raw[: width - 1], raw[:-1], raw + b"\0"):
        with pytest.raises(ValueError, match="cut"):
            pickle.loads(head, buffers=[bad])
    with pytest.raises((ValueError, pickle.UnpicklingError)):
        pickle.loads(head)
    assert _core._live() == before


HOSTILE = [
    (),
    ("CPU",),
    ("CPU", F32, True),
    ("CPU", "Float32", True, 0),
    ("CPU", F32, 1, 0),
    ("CPU", F32, True, "0"),
    ("CPU", F32, True, -1),
    ("CPU", F32, True, 2**62),
    ("CPU", F32, True, 2**70),
    ("CPU", F32, True, -(2**70), b"1234"),
    ("CPU", F32, True, 1.0, b"1234"),
    ("CPU", F32, True, 1, "1234"),
    ("CPU", F32, True, 1, 5),
    ("CPU", F32, True, 1, None),
    ("CPU", F32, True, 1, memoryview(b"12345678")[::2]),
    ("CPU", F32, True, None, b"1234"),
    ("CPU", cs.DType.Float64, True, 1, b"12345678"),
    ("CPU", cs.DType.Floating, True, 0),
    ("FileBacked", BOOL, True, 1, b"1"),
    ("FileBacked", cs.DType.Floating, True, 0),
    ("Evictable", F32, True, 0),
    ("Carrier", F32, True, 0),
    ("", F32, True, 0),
    ("cpu", F32, True, 0),
    (b"CPU", F32, True, 0),
    (None, F32, True, 0),
    (cs.CPU, F32, True, 0),
    (["CPU", "CPU"], F32, True, 0),
    ((), F32, True, 0),
    (("CPU",), F32, True, 0),
    (("CPU", "CPU", "CPU"), F32, True, 0),
    (("CPU", None), F32, True, 0),
    (("CPU", "FileBacked"), BOOL, True, 0),
    (LeastCarrier([1.0]), F32, True, 1, b"1234"),
    (("CPU", LeastCarrier([1.0])), F32, True, 1, b"1234"),
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=named)
def test_hostile_pickles_are_clear_errors(arguments):
    """No crash, no allocation on a pickle's word, nothing left behind."""
    gc.collect()
    before = _core._live()
    with pytest.raises((TypeError, ValueError, BufferError, NotImplementedError)) as raised:
        _core._rebuild(*arguments)
    assert str(raised.value)
    del raised
    assert _core._live() == before


def test_trees_without_end():
    deep = "CPU"
    for _ in range(5000):
        deep = (deep, "CPU")
    with pytest.raises(ValueError, match="deep"):
        _core._rebuild(deep, F32, True, 0)
    h = cs.CPU(1)
    for _ in range(64):
        h = cs.Evictable(h, cs.CPU(1))
    assert pickle.loads(pickle.dumps(h)).tolist() == [0.0]
    with pytest.raises(ValueError, match="levels"):
        pickle.dumps(cs.Evictable(h, cs.CPU(1)))


def test_a_prototype_that_answers_nonsense():
    """A custom tier's factory is user code."""

    class Same(Travelling):
        def _new_like(self, values, mutable, dtype, /):
            return owned

    owned = make_cpu([1, 2], I32)
    keep = cs.Evictable(owned, cs.CPU(1, dtype=I32))
    with pytest.raises(RuntimeError, match="owned"):
        _core._rebuild((Same([0, 0], I32), "CPU"), I32, True, 2, bytes(8))
    assert keep.primary is owned and keep.tolist() == [1, 2]


def test_metal_where_there_is_none():
    """A RuntimeError that says what is missing, at loading."""
    if metal_absence() is None:
        pytest.skip("Metal can be had here")
    for kind in ("Metal", ("Metal", "FileBacked"), ("CPU", "Metal")):
        with pytest.raises(RuntimeError, match="Metal"):
            _core._rebuild(kind, F32, True, 1, struct.pack("f", 1))


def test_a_file_that_was_cut_short_is_an_error_now():
    """Not when the pickle is loaded, with the original gone."""
    f = cs.FileBacked(dtype=I32).new_like(range(50_000))
    raw = f.path.read_bytes()
    with f.path.open("r+b") as file:
        file.truncate(100_000)
    for way in WAYS.values():
        with pytest.raises(OSError, match="read"):
            way(f)
    f.path.write_bytes(raw)
    check_twin(WAYS["bytes"](f), f, list(range(50_000)))


# ---- custom carriers --------------------------------------------------------------------------------------


@each_kind(lambda kind: kind.custom)
def test_custom_carriers_need_a_reduce_of_their_own(cell: Cell):
    """Without, a TypeError that says so; a hierarchy over one as well, evicted too."""
    c = cell.make(3)
    for _ in range(2):
        for way in WAYS.values():
            with pytest.raises(TypeError, match="HookedCarrier.*__reduce__"):
                way(c)
        if cell.kind.evictable:
            c.evict()
    with pytest.raises(TypeError, match="Least"):
        pickle.dumps(LeastCarrier([1.0]))


def test_a_custom_carrier_travels_by_its_own_reduce():
    c = Travelling([1, 2], I32)
    c.version_before = c.version
    for way in WAYS.values():
        twin = way(c)
        assert type(twin) is Travelling and twin.tolist() == [1, 2] and twin is not c


@pytest.mark.parametrize(
    "make",
    [
        hierarchy(make_travelling, make_cpu),
        hierarchy(make_cpu, make_travelling),
        hierarchy(make_travelling, make_travelling),
        hierarchy(hierarchy(make_travelling, make_cpu), make_cpu),
    ],
    ids=["primary", "secondary", "both", "nested"],
)
def test_a_hierarchy_over_travelling_tiers(make):
    """The tiers' own kinds are made by their own factories; evicted, it is read through the hooks."""
    for dtype, values in ((I32, [1, -2, 3]), (F32, [1.5, -0.0, 2.0]), (BOOL, [True, False, True])):
        h = make(values, dtype)
        for _ in range(2):
            before = state(h)
            for way in WAYS.values():
                twin = way(h)
                check_twin(twin, h, values)
                twin.evict()
                twin.promote()
                assert repr(twin.tolist()) == repr(values)
            assert state(h) == before
            h.evict()


def test_other_ways_to_say_how_a_carrier_travels():
    """`__reduce_ex__`, and a mixin's `__reduce__`."""

    class Mixin:
        def __reduce__(self):
            return (Travelling, (["mixin"], cs.DType.Float64))

    class Mixed(Mixin, HookedCarrier):
        pass

    class Extended(HookedCarrier):
        def __reduce_ex__(self, protocol):
            return (Travelling, ([protocol], I32))

    assert pickle.loads(pickle.dumps(Mixed([], F32))).tolist() == ["mixin"]
    assert pickle.loads(pickle.dumps(Extended([], F32), 4)).tolist() == [4]


def test_hooks_that_misbehave_while_they_are_read():
    class Fleeting(Travelling):
        def _get_value(self, index, /):
            if index == 1:
                self.act()
            return super()._get_value(index)

    class Boom(Exception):  # noqa: N818
        pass

    def fail():
        raise Boom

    custom = Fleeting([1, 2, 3], I32)
    h = cs.Evictable(custom, cs.CPU(1, dtype=I32))
    custom.act = fail
    for way in WAYS.values():
        with pytest.raises(Boom):
            way(h)
    custom.act = h.evict  # the carrier is at work
    for way in WAYS.values():
        with pytest.raises(RuntimeError, match="hook"):
            way(h)
    custom.act = lambda: None
    assert h.tolist() == [1, 2, 3] and h.version == 0


# ---- tensors, and what else has to do with carriers -------------------------------------------------------


@each(shipped)
def test_a_tensor_travels_with_its_carrier(cell: Cell):
    c = cell.make(14)
    layout = cs.Layout(cs.Shape(2, [3]), cs.Stride(1, [4]))
    t = cs.Tensor(c, 2, layout)
    for way in WAYS.values():
        twin = way(t)
        assert type(twin) is cs.Tensor and (twin.offset, twin.layout) == (2, layout)
        assert twin.tolist() == t.tolist() and twin.version == 0
        check_twin(twin.carrier, c, cell.samples(14))
    if cell.kind.evictable:
        c.evict()
        twin = WAYS["frames"](t)
        check_twin(twin.carrier, c, cell.samples(14))
        assert c.is_evicted() and twin.layout == layout
    c.release()
    for way in WAYS.values():
        twin = way(t)
        assert twin.carrier.is_released() and (twin.offset, twin.layout) == (2, layout)
        with pytest.raises(RuntimeError, match="released"):
            twin.tolist()


@pytest.mark.parametrize("way", PICKLES.values(), ids=PICKLES)
def test_one_pickle_one_carrier(way):
    """What shared a carrier shares its twin."""
    c = make_cpu(range(6), I32)
    a, b = cs.Tensor(c, 0, line(3)), cs.Tensor(c, 1, line(3))
    got = way({"a": a, "b": b, "c": c, "again": [c, a]})
    assert got["a"].carrier is got["b"].carrier is got["c"] is got["again"][0]
    assert got["again"][1] is got["a"]
    got["a"][1] = 77
    assert got["b"][0] == 77 == got["c"][1] and c[1] == 1


pair = compound((F32, I32))


def planes(kind=cs.CPU, shared=False):
    dtype = pair if not shared else compound((I32, I32))
    carriers = [kind(4, dtype=d) for d in dtype.planes]
    if shared:
        carriers[1] = carriers[0]
    parts = [cs.Subtensor(c, i, line(2)) for i, c in enumerate(carriers)]
    return cs.Tensor.from_subtensors(dtype, parts, [line(2)])


@ways
@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
def test_tensors_of_compound_dtypes(way, shared):
    t = planes(shared=shared)
    twin = way(t)
    assert twin.dtype() is t.dtype() and twin.adjacent == t.adjacent
    assert [p.offset for p in twin.subtensors] == [0, 1] and [p.layout for p in twin.subtensors] == [
        line(2)
    ] * 2
    first, second = (p.carrier for p in twin.subtensors)
    assert (first is second) is shared
    assert not {id(first), id(second)} & {id(p.carrier) for p in t.subtensors}
    t.subtensors[0].carrier.release()
    assert way(t).subtensors[0].carrier.is_released()


@ways
def test_subtensors(way):
    part = cs.Subtensor(make_cpu([1, 2, 3], I32), 1, line(2))
    twin = way(part)
    assert (twin.offset, twin.layout, twin.carrier.tolist()) == (1, line(2), [1, 2, 3])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (None, (), ()),
        (None, [], ()),
        (None, (cs.CPU(1),), ()),
        (None, (cs.Subtensor(cs.CPU(1), 5, line(1)),), ()),
        (None, (cs.Subtensor(cs.CPU(1), -1, line(1)),), ()),
        (None, (cs.Subtensor(cs.CPU(2), 0, line(1)),) * 2, ()),
        (None, (cs.Subtensor(cs.CPU(2), 0, line(1)),), (line(1),)),
        (F32, (cs.Subtensor(cs.CPU(2), 0, line(1)),), ()),
        (pair, (cs.Subtensor(cs.CPU(2), 0, line(1)),) * 2, (line(1),)),
        (pair, (cs.Subtensor(cs.CPU(2), 0, line(1)),), ()),
        ("pair", (cs.Subtensor(cs.CPU(2), 0, line(1)),), ()),
    ],
    ids=named,
)
def test_hostile_tensors_are_clear_errors(arguments):
    with pytest.raises((TypeError, ValueError)):
        _core._rebuild_tensor(*arguments)


@ways
def test_descriptions_keep_equality_or_identity(way):
    """Shape, Stride, Layout by value; dtypes, one's own among them, are the same object."""
    values = [
        cs.Shape(),
        cs.Shape(2, [3, [4]]),
        cs.Shape([[2, 3]]),
        cs.Stride(0, [2**40]),
        cs.Layout(cs.Shape(2, [3]), cs.Stride(0, [7])),
    ]
    assert way(values) == values and [repr(v) for v in way(values)] == [repr(v) for v in values]
    for dtype in (*cs.DType.registered(), pair):
        assert way(dtype) is dtype


def test_a_dtype_that_is_not_registered_there():
    """LookupError for an unknown name, ValueError for another definition; a carrier's pickle says so too."""
    name = f"Test.Pickled{id(object())}"
    run = """
        import pickle, sys, carrier_storage as cs
        if sys.argv[2] == "other":
            cs.CompoundDType(sys.argv[1], planes=[cs.DType.Int32, cs.DType.Float32])
        try:
            pickle.loads(bytes.fromhex(sys.argv[3]))
        except Exception as error:
            print(type(error).__name__)
        """
    dtype = cs.CompoundDType(name, planes=[F32, I32])
    parts = [cs.Subtensor(cs.CPU(2, dtype=d), 0, line(2)) for d in dtype.planes]
    for thing in (dtype, cs.Tensor.from_subtensors(dtype, parts, [line(2)])):
        text = pickle.dumps(thing).hex()
        assert run_child(run, args=(name, "none", text)).stdout.split() == ["LookupError"]
        assert run_child(run, args=(name, "other", text)).stdout.split() == ["ValueError"]


@ways
def test_what_does_not_travel(way):
    """Ownership, scopes and iterations belong to their process."""
    c = cs.CPU(2)
    token = c.claim()
    for thing in (token, token.access(), iter(c), c.edit(), reversed(c)):
        with pytest.raises((TypeError, pickle.PicklingError)):
            way(thing)


# ---- other threads, other processes -----------------------------------------------------------------------


def test_a_snapshot_while_others_write():
    """Copies and bytes are values of one moment: a write of another thread is in it or not."""
    run_child(
        """
        import copy, pickle, threading
        from kinds import I32, make_cpu, make_cpu_file, make_file, make_generic
        N = 200_000
        for make in (make_cpu, make_generic, make_file, make_cpu_file):
            c = make([0] * N, I32)
            stop = threading.Event()
            def write():
                i = 0
                while not stop.is_set():
                    i += 1
                    c.fill(i)
            thread = threading.Thread(target=write)
            thread.start()
            try:
                for _ in range(6):
                    for way in (copy.copy, lambda c: pickle.loads(pickle.dumps(c, 2))):
                        twin = way(c)
                        seen = set(twin.tolist())
                        assert len(seen) == 1, (make, len(seen))
            finally:
                stop.set()
                thread.join()
        """
    )


def test_transitions_meanwhile():
    """Whether promoted or evicted at the moment: the values are all there, by every way."""
    run_child(
        """
        import threading
        from exchange.twins import WAYS
        from kinds import I32, make_cpu_cpu, make_cpu_file
        want = list(range(50_000))
        for make in (make_cpu_file, make_cpu_cpu):
            h = make(want, I32)
            stop = threading.Event()
            def move():
                while not stop.is_set():
                    h.evict()
                    h.promote()
            thread = threading.Thread(target=move)
            thread.start()
            try:
                for _ in range(3):
                    for way in WAYS.values():
                        assert way(h).tolist() == want
            finally:
                stop.set()
                thread.join()
            assert h.version == 0
        """
    )


def test_many_threads_pickle_one_carrier():
    c = make_cpu(range(20_000), I32)
    failures = []

    def work():
        for way in WAYS.values():
            if way(c).tolist() != list(range(20_000)):
                failures.append(way)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and c.version == 0


def test_an_inherited_file_in_a_forked_child():
    """It may be read there, so it may be pickled; the twin's file is the child's own."""
    run_child(
        """
        import os, pickle
        import carrier_storage as cs
        f = cs.FileBacked(dtype=cs.DType.Int32).new_like([1, 2, 3])
        child = os.fork()
        if child == 0:
            twin = pickle.loads(pickle.dumps(f))
            twin[0] = 9
            good = twin.tolist() == [9, 2, 3] and twin.path.parent != f.path.parent
            del twin
            import carrier_storage._core as core
            core._remove_session()
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert f.tolist() == [1, 2, 3]
        """
    )


def test_nothing_leaks():
    """Blocks of twins, pickles and frames go."""
    c, f = make_cpu(range(5000), I32), cs.FileBacked(dtype=I32).new_like(range(5000))
    gc.collect()
    before = _core._live()
    for way in WAYS.values():
        for thing in (c, f, cs.Tensor(c, 0, line(5))):
            way(thing)
    assert _core._live() == before
