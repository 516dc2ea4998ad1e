# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions E and M: what was handed out outlives release, eviction, the carrier, threads and the interpreter's end."""

import array
import ctypes
import gc
import itertools
import sys
import threading
import weakref
from pathlib import Path

import carrier_storage as cs
import pytest
from capsules import Exporter, inside, take
from handed import library, shares, simple

from helpers import run_child, tensor, values
from kinds import BOOL, F32, each, is_evictable


def churn(cell):
    """Storage that would sit where freed storage was."""
    return [cell.make([cell.good] * 64) for _ in range(32)] + [bytearray(b"\xcd" * 4096) for _ in range(32)]


def by_buffer(c):
    view = memoryview(c)
    return view.tolist


def by_array(c):
    a = c.numpy()
    return a.tolist


def by_tensor(c):
    a = tensor(c).numpy()
    return a.tolist


def by_capsule(c):
    managed = inside(c.__dlpack__(max_version=(1, 0)))
    a = managed.array
    kind = {(2, 32): ctypes.c_float, (0, 32): ctypes.c_int32, (6, 8): ctypes.c_bool}[(a.code, a.bits)]
    return lambda: list((kind * a.shape[0]).from_address(a.data)) if managed else None


def by_numpy_dlpack(c):
    a = library("numpy").from_dlpack(c)
    return a.tolist


def by_carrier(c):
    twin = cs.CPU.from_dlpack(c)
    return lambda: values(twin)


WAYS = [by_buffer, by_array, by_tensor, by_capsule, by_numpy_dlpack, by_carrier]
each_way = pytest.mark.parametrize("way", WAYS)


@each(shares)
@each_way
def test_release_and_drop(cell, way):
    """release() succeeds at once, the carrier may go, and the values stay readable; then the block goes too."""
    gc.collect()
    before = cs._core._live()
    c = cell.make(64)
    read = way(c)
    c.release()
    assert c.is_released() and read() == cell.samples(64)
    gone = weakref.ref(c)
    del c
    gc.collect()
    assert gone() is None
    more = churn(cell)
    assert read() == cell.samples(64)
    del read, more
    gc.collect()
    assert cs._core._live() == before


@each(shares)
@each_way
def test_drop_alone(cell, way):
    """A view keeps the block, not the carrier: a hierarchy that is dropped gives its tiers back at once."""
    c = cell.make(64)
    tiers = (c.primary, c.secondary) if cell.kind.evictable else ()
    read, gone = way(c), weakref.ref(c)
    del c
    assert gone() is None and not any(t.is_owned() for t in tiers)
    more = churn(cell)
    assert read() == cell.samples(64) and more


@each(lambda kind: is_evictable(kind) and shares(kind))
@each_way
def test_eviction(cell, way):
    """An export keeps showing the values it had when the hierarchy was evicted."""
    h = cell.make(64)
    read = way(h)
    h[0] = last = not h[0] if cell.dtype is BOOL else cell.good
    expected = [last, *cell.samples(64)[1:]]
    h.evict()
    assert read() == expected
    h.promote()
    assert read() == expected
    h[1] = not h[1] if cell.dtype is BOOL else cell.good
    assert read() == expected and way(h)() == values(h)
    h.release()
    more = churn(cell)
    assert read() == expected and more


@each(simple)
def test_any_order_of_ends(cell):
    """Carrier, views and views of views go in any order."""
    gc.collect()
    before = cs._core._live()
    for order in itertools.permutations(range(4)):
        c = cell.make(16)
        view = memoryview(c)
        held = [c, view, view[2:9], library("numpy").asarray(view[::3])]
        del c, view
        for i in order:
            held[i] = None
            if held[1] is not None:
                assert held[1].tolist() == cell.samples(16)
            if held[2] is not None:
                assert held[2].tolist() == cell.samples(16)[2:9]
            if held[3] is not None:
                assert held[3].tolist() == cell.samples(16)[::3]
    gc.collect()
    assert cs._core._live() == before


@each(shares)
def test_views_from_many_threads(cell):
    """Views are made, read and dropped in threads while the carrier is released by another."""
    wrong = []

    def work(c, barrier):
        barrier.wait()
        for _ in range(50):
            try:
                if memoryview(c).tolist() != cell.samples(64):
                    wrong.append("values")
                a = c.numpy()
                if a.tolist() != cell.samples(64):
                    wrong.append("array")
            except (RuntimeError, BufferError):
                return
            except BaseException as error:
                wrong.append(error)

    for _ in range(5):
        c, barrier = cell.make(64), threading.Barrier(5)
        workers = [threading.Thread(target=work, args=(c, barrier)) for _ in range(4)]
        for w in workers:
            w.start()
        barrier.wait()
        c.release()
        for w in workers:
            w.join()
    assert not wrong


@each(lambda kind: is_evictable(kind) and shares(kind))
def test_views_beside_transitions(cell):
    """An export that meets a transition waits for it, and shows whole values or a BufferError."""
    h, wrong, stop = cell.make(5000), [], threading.Event()
    samples = cell.samples(5000)

    def look():
        while not stop.is_set():
            try:
                if memoryview(h).tolist() != samples:
                    wrong.append("values")
            except BufferError:
                pass
            except BaseException as error:
                wrong.append(error)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for w in lookers:
        w.start()
    for _ in range(20):
        h.evict()
        h.promote()
    stop.set()
    for w in lookers:
        w.join()
    assert not wrong


@each(simple)
def test_a_deleter_in_a_foreign_thread(cell):
    """It needs neither Python nor its lock."""
    libc = ctypes.CDLL(None)
    gc.collect()
    before = cs._core._live()
    for asked in ({}, {"max_version": (1, 0)}, {"copy": True}):
        c = cell.make(3000)
        managed = take(c.__dlpack__(**asked))
        del c
        function, thread = ctypes.cast(managed.deleter, ctypes.c_void_p), ctypes.c_ulong()
        where = ctypes.c_void_p(ctypes.addressof(managed))
        # ctypes gives the lock up around both calls.
        assert libc.pthread_create(ctypes.byref(thread), None, function, where) == 0
        assert libc.pthread_join(thread, None) == 0
    gc.collect()
    assert cs._core._live() == before


def test_a_foreign_owner_in_a_foreign_thread():
    """Memory that Python owns is given back with the lock, whoever drops it last."""
    libc = ctypes.CDLL(None)
    memory = array.array("f", range(100))
    managed = take(cs.CPU.from_buffer(memory).__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError):
        memory.append(1)
    function, thread = ctypes.cast(managed.deleter, ctypes.c_void_p), ctypes.c_ulong()
    assert (
        libc.pthread_create(ctypes.byref(thread), None, function, ctypes.c_void_p(ctypes.addressof(managed)))
        == 0
    )
    assert libc.pthread_join(thread, None) == 0
    memory.append(1)


def test_chains_of_wrapping():
    """Carrier over array over carrier: each keeps the next, and all of it goes."""
    source = Exporter(array.array("f", range(50)))
    c = cs.CPU.from_dlpack(source)
    for _ in range(5):
        c = cs.CPU.from_dlpack(library("numpy").from_dlpack(c))
        c = cs.CPU.from_buffer(memoryview(c))
    assert values(c) == [float(i) for i in range(50)] and source.deleted == 0
    del c
    gc.collect()
    assert source.deleted == 1


def test_the_end_of_an_owner(monkeypatch):
    """It may use the library and the carrier itself; an error of its own is reported as Python reports such."""
    seen, reported = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))

    class Owner(array.array):
        def __del__(self):
            seen.append(values(cs.CPU(2)))
            for call in (lambda: c[0], c.release, lambda: memoryview(c)):
                try:
                    call()
                except (RuntimeError, BufferError) as error:
                    seen.append(type(error))
            raise KeyError("mine")

    c = cs.CPU.from_buffer(Owner("f", [1, 2]))
    c.release()
    assert seen == [[0.0, 0.0], RuntimeError, RuntimeError, BufferError]
    assert [type(error) for error in reported] == [KeyError] and c.is_released()


class Node(array.array):
    """A buffer that can be part of a cycle."""


@pytest.mark.parametrize("through", ["carrier", "hierarchy", "tensor"])
def test_a_cycle_through_a_wrapped_buffer(through):
    """An exporter that holds its own carrier is found by the garbage collector."""
    node = Node("f", [1, 2, 3])
    c = cs.CPU.from_buffer(node)
    if through == "hierarchy":
        c = cs.Evictable(c, cs.CPU(0))
    node.held = tensor(c) if through == "tensor" else c
    gone = weakref.ref(node)
    gc.collect()
    assert c[1] == 2.0 and gone() is node
    del node
    gc.collect()
    assert c[1] == 2.0 and gone() is not None
    del c
    gc.collect()
    assert gone() is None


def test_a_view_keeps_a_cycle():
    """Memory in other hands keeps its owner, cycle or not."""
    node = Node("f", [1, 2, 3])
    node.held = cs.CPU.from_buffer(node)
    view, gone = memoryview(node.held), weakref.ref(node)
    del node
    gc.collect()
    assert gone() is not None and view.tolist() == [1.0, 2.0, 3.0]
    del view
    gc.collect()
    assert gone() is None


def test_a_cycle_whose_end_looks_at_its_carrier():
    """Finalizers run before anything is cleared."""
    seen = []

    class Looking(Node):
        def __del__(self):
            seen.append(values(self.held))

    node = Looking("f", [1, 2])
    node.held = cs.CPU.from_buffer(node)
    del node
    gc.collect()
    assert seen == [[1.0, 2.0]]


def test_a_view_after_an_edit():
    """The array of an edit keeps its memory too."""
    for c in (cs.CPU(50), cs.FileBacked(dtype=F32).new_like([0.0] * 50)):
        with c.edit() as a:
            a[:] = 3
        c.release()
        del c
        gc.collect()
        a[0] = 4
        assert a.tolist() == [4.0] + [3.0] * 49


EXITS = {
    "views": "held = [memoryview(c), memoryview(h)]",
    "arrays": "held = [c.numpy(), h.numpy(), cs.Tensor(c, 0, line).numpy()]",
    "capsules": "held = [c.__dlpack__(), h.__dlpack__(max_version=(1, 0)), c.__dlpack__(copy=True)]",
    "taken": "import numpy as np; held = [np.from_dlpack(c), np.from_dlpack(h)]",
    "wrapped": "import numpy as np; a = np.ones(9, 'f4'); held = [cs.CPU.from_dlpack(a), cs.CPU.from_buffer(a)]",
    "edit": "held = [c.edit(), h.edit()]; held += [e.__enter__() for e in held]",
    "cycle": "held = [memoryview(c)]; held.append(held)",
    "thread": "import threading; held = c.numpy(); loop = lambda c=c: [memoryview(c) for _ in iter(int, 1)]; "
    "threading.Thread(target=loop, daemon=True).start()",
}


@pytest.mark.parametrize("what", EXITS)
@pytest.mark.parametrize("released", [False, True])
def test_at_the_end_of_the_interpreter(what, released):
    """Exit with memory in other hands: no crash, no noise."""
    if what not in ("views", "cycle", "capsules"):
        library("numpy")
    run_child(f"""
        import carrier_storage as cs, sys
        line = cs.Layout(cs.Shape(300000), cs.Stride(1))
        c, h = cs.CPU(300000), cs.Evictable(cs.CPU(300000), cs.FileBacked(dtype=cs.DType.Float32))
        {EXITS[what]}
        if {released and what != "edit"}:
            c.release(); h.release()
        sys.kept = held
        del c, h
    """)


def test_a_capsule_that_outlives_the_interpreter():
    """A consumer in C may call the deleter when Python is gone."""
    run_child(f"""
        import ctypes
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import carrier_storage as cs
        from capsules import take
        c = cs.CPU(300000)
        managed = take(c.__dlpack__())
        # What C registers before main ends runs after the interpreter's own end. It says whose it is, since the thread
        # sanitizer passes no argument to nobody's.
        function, whose = ctypes.cast(managed.deleter, ctypes.c_void_p), ctypes.c_void_p(id(cs))
        assert ctypes.CDLL(None).__cxa_atexit(function, ctypes.c_void_p(ctypes.addressof(managed)), whose) == 0
    """)
