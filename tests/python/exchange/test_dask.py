# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers in dask: their tokens, their sizes, and their way between processes."""

import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import carrier_storage as cs
import numpy as np
import pytest

from helpers import line, run_child, tensor
from kinds import F32, I32, Cell, each, each_kind, is_evictable

dask_base = pytest.importorskip("dask.base", reason="needs dask")
tokenize = dask_base.tokenize

ROOT = Path(__file__).parents[3]


# ---- tokens ----------------------------------------------------------------------------------------------------------


@each()
def test_a_token_is_identity_and_version(cell: Cell):
    """Reads leave it alone; every write changes it; an equal carrier and a copy have others."""
    carrier, other = cell.make(3), cell.make(3)
    first = tokenize(carrier)
    list(carrier), carrier.read(), repr(carrier), carrier.size()
    assert tokenize(carrier) == first and tokenize([carrier]) == tokenize([carrier])
    assert tokenize(other) != first
    seen = [first]
    for write in (
        lambda: carrier.set_value(0, cell.good),
        lambda: carrier.set_value(0, cell.good),
        lambda: carrier.write(0, cell.samples(2)),
        lambda: carrier.fill(cell.zero),
        carrier.increment_version,
    ):
        write()
        seen.append(tokenize(carrier))
    assert len(set(seen)) == len(seen)


@each_kind()
def test_a_failed_write_leaves_the_token(cell: Cell):
    carrier = cell.make(3)
    before = tokenize(carrier)
    for write in (lambda: carrier.set_value(3, cell.good), lambda: carrier.write(2, cell.samples(2))):
        with pytest.raises(IndexError):
            write()
    assert tokenize(carrier) == before


@each(is_evictable)
def test_moves_between_tiers_are_no_change(cell: Cell):
    carrier = cell.make(3)
    before = tokenize(carrier)
    carrier.evict()
    assert tokenize(carrier) == before
    carrier.promote()
    assert tokenize(carrier) == before


def test_a_token_of_a_released_carrier():
    carrier = cs.CPU(1)
    before = tokenize(carrier)
    carrier.release()
    assert tokenize(carrier) == before


def test_a_number_is_never_used_twice():
    """One address, many carriers: an id() would come back."""
    assert len({tokenize(cs.CPU(1)) for _ in range(3000)}) == 3000
    gc.collect()
    assert len({cs.CPU(1).__dask_tokenize__() for _ in range(3000)}) == 3000


def test_a_tensor_follows_its_carrier_and_its_place():
    carrier = cs.CPU(12)
    seen = {
        tokenize(t)
        for t in (
            tensor(carrier),
            tensor(carrier, 2),
            tensor(carrier, 2, offset=1),
            tensor(carrier, 2, step=2),
            cs.Tensor(carrier, 0, cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1))),
            cs.Tensor(carrier, 0, cs.Layout(cs.Shape(2, 3), cs.Stride(1, 2))),
            cs.Tensor(carrier, 0, cs.Layout(cs.Shape([[2, 3]]), cs.Stride([[1, 2]]))),
            tensor(cs.CPU(12)),
        )
    }
    assert len(seen) == 8
    view = tensor(carrier)
    before = tokenize(view)
    assert tokenize(tensor(carrier)) == before
    carrier[0] = 1.0
    assert tokenize(view) != before


def test_other_processes_have_other_tokens():
    """A scheduler sees those of many: started anew, and forked."""
    code = "import carrier_storage as cs\nprint(cs.CPU(1).__dask_tokenize__())"
    outputs = {run_child(code).stdout for _ in range(2)}
    assert len(outputs) == 2
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    run_child("""
    import os
    import carrier_storage as cs
    c = cs.CPU(1)
    mine = repr(c.__dask_tokenize__()).encode()
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(c.__dask_tokenize__()).encode())
        os._exit(0)
    os.wait()
    assert os.read(read, 1000) != mine and repr(c.__dask_tokenize__()).encode() == mine
    """)


# ---- sizes -----------------------------------------------------------------------------------------------------------


def entry_points() -> dict[str, str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]["entry-points"]["dask.sizeof"]


@pytest.fixture
def installed(tmp_path):
    """The package's entry points as an installation has them, for child processes: as pyproject.toml declares them."""
    metadata = tmp_path / "entries" / "carrier_storage_here-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: carrier-storage-here\nVersion: 1\n")
    lines = [f"{name} = {value}" for name, value in entry_points().items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[dask.sizeof]", *lines]))
    return {"PYTHONPATH": os.pathsep.join([str(metadata.parent), *filter(None, sys.path)])}


def test_dask_knows_the_size_by_itself(installed):
    """Through the entry point: nobody imports anything."""
    run_child(
        """
        import sys
        import carrier_storage as cs
        assert "dask" not in sys.modules and "carrier_storage._dask" not in sys.modules
        from dask.sizeof import sizeof
        c = cs.CPU(1000)
        assert 4000 <= sizeof(c) < 5000 and 8000 <= sizeof([c, cs.CPU(1000)]) < 10000
        """,
        env=installed,
    )


@pytest.fixture
def sizeof():
    """A dispatch such as dask's, with our registration, whether or not this is an installation."""
    from carrier_storage._dask import register
    from dask.utils import Dispatch

    fresh = Dispatch("sizeof")
    fresh.register(object, sys.getsizeof)
    register(fresh)
    return fresh


@each()
def test_the_size_is_what_is_kept(sizeof, cell: Cell):
    """Bytes of the slots, and little more; a Tensor's is its carrier's; nothing is touched by asking."""
    carrier = cell.make(10_000)
    nbytes, version = 10_000 * cell.dtype.bits // 8, carrier.version
    assert type(sizeof(carrier)) is int and nbytes <= sizeof(carrier) < nbytes + 4096
    assert nbytes <= sizeof(tensor(carrier, 2)) < nbytes + 8192
    assert carrier.version == version
    if cell.kind.evictable:
        carrier.evict()
        assert nbytes <= sizeof(carrier) < nbytes + 4096
        carrier.promote()
    carrier.release()
    assert 0 <= sizeof(carrier) < 4096


def test_the_size_of_a_file_is_its_bytes_on_disk(sizeof):
    carrier = cs.FileBacked(dtype=F32)
    assert sizeof(carrier) < 4096
    carrier.grow(100_000)
    assert os.path.getsize(carrier.path) == 400_000 <= sizeof(carrier) < 404_096


def test_subtensors_of_one_carrier_count_once(sizeof):
    carrier = cs.CPU(10_000)
    pair = cs.CompoundDType("Test.DaskPair", planes=[F32, F32])
    parts = [cs.Subtensor(carrier, offset, line(2)) for offset in (0, 2)]
    both = cs.Tensor.from_subtensors(pair, parts, [line(2)])
    assert 40_000 <= sizeof(both) < 48_000 and tokenize(both) == tokenize(both)


# ---- between processes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["CPU", "FileBacked", "Evictable", "Tensor"])
def test_the_payload_goes_out_of_band(make):
    """As distributed serializes it: the header is small, and no frame is a copy of a copy."""
    protocol = pytest.importorskip("distributed.protocol", reason="needs distributed")
    values = np.arange(50_000, dtype=np.float32)
    carrier = cs.CPU(0).new_like(values)
    thing = {
        "CPU": lambda: carrier,
        "FileBacked": lambda: cs.FileBacked(dtype=F32).new_like(values),
        "Evictable": lambda: cs.Evictable(carrier, cs.FileBacked(dtype=F32)),
        "Tensor": lambda: tensor(carrier),
    }[make]()
    header, frames = protocol.serialize(thing)
    sizes = [memoryview(frame).nbytes for frame in frames]
    assert max(sizes) == 200_000 and sum(sizes) < 210_000
    twin = protocol.deserialize(header, [bytes(frame) for frame in frames])
    assert type(twin) is type(thing) and twin.tolist() == values.tolist()


def tiered_sum(number):
    """In a worker: keeps a hierarchy on disk for as long as the worker lives."""
    carrier = cs.Evictable(cs.CPU(0, dtype=I32).new_like(range(number)), cs.FileBacked(dtype=I32))
    carrier.evict()
    KEPT.append(carrier)
    carrier.promote()
    total = sum(carrier)
    carrier.evict()
    return total


KEPT: list = []

POOL = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, {folder!r})
from test_dask import tiered_sum

if __name__ == "__main__":
    method, how = sys.argv[1:]
    context = multiprocessing.get_context(method)
    want = [sum(range(n)) for n in range(1, 9)]
    if how == "executor":
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(tiered_sum, range(1, 9))) == want
    elif how == "terminated":
        with context.Pool(2) as pool:  # ends its workers by a signal
            assert pool.map(tiered_sum, range(1, 9)) == want
    else:
        pool = context.Pool(2)
        assert pool.map(tiered_sum, range(1, 9)) == want
        pool.close()
        pool.join()
"""


@pytest.mark.parametrize(
    ("method", "how"),
    [
        ("fork", "executor"),
        ("spawn", "executor"),
        ("forkserver", "executor"),
        ("fork", "pool"),
        ("fork", "terminated"),
        ("spawn", "terminated"),
    ],
)
def test_pool_workers_leave_no_session_directory(session, tmp_path_factory, method, how):
    """However they were started, when they end as pools end them."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    script = tmp_path_factory.mktemp("script") / "main.py"
    script.write_text(POOL.format(folder=str(Path(__file__).parent)))
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(script), method, how],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in os.listdir(session) if "carrier" in name] == []


CLUSTER = """
import os, sys
import numpy as np
import carrier_storage as cs
from distributed import Client, LocalCluster

N = 1 << 18


def make(number):
    return cs.CPU(0, dtype=cs.DType.Int32).new_like(np.full(N, number, np.int32))


def on_disk(number):
    c = cs.Evictable(make(number), cs.FileBacked(dtype=cs.DType.Int32))
    c.evict()
    return c


def total(c):
    if isinstance(c, cs.Evictable):
        c.promote()
    return int(c.numpy().sum(dtype=np.int64))


if __name__ == "__main__":
    import dask
    folder = sys.argv[1]
    dask.config.set({"distributed.worker.memory.target": False, "temporary-directory": folder})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        # the size that the scheduler knows is the one of the slots
        made = client.submit(make, 7, key="made")
        assert made.result().tolist() == [7] * N
        sizes = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.tasks["made"].nbytes)
        assert 4 * N <= sizes < 4 * N + 4096, sizes
        # from worker to worker, evicted ones too
        parts = client.map(on_disk, range(6), pure=False)
        one, other = client.scheduler_info()["workers"]
        assert client.gather(client.map(total, parts, workers=[one], pure=False)) == [n * N for n in range(6)]
        assert client.gather(client.map(total, parts, workers=[other], pure=False)) == [n * N for n in range(6)]
        # the same carrier is the same work, a written one is not
        c = make(3)
        first, again = client.submit(total, c), client.submit(total, c)
        assert first.key == again.key
        c[0] = 4
        assert client.submit(total, c).key != first.key
        assert client.submit(total, c).result() == 3 * N + 1
"""


def test_a_local_cluster(session, tmp_path_factory, installed):
    """Sizes, transport between workers, tokens; when it ends, no session directory is left."""
    pytest.importorskip("distributed", reason="needs distributed")
    folder = tmp_path_factory.mktemp("cluster")
    script = folder / "main.py"
    script.write_text(CLUSTER)
    done = subprocess.run(
        [sys.executable, str(script), str(folder / "dask")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **installed},
    )
    assert done.returncode == 0, done.stderr
    assert [name for name in os.listdir(session) if "carrier" in name] == []


def test_spilling(session, installed):
    """A worker's memory of 2 carriers, 8 are made: what is spilled comes back as it was."""
    pytest.importorskip("distributed", reason="needs distributed")
    code = """
    import tempfile
    import carrier_storage as cs
    from distributed.spill import SpillBuffer
    with tempfile.TemporaryDirectory() as folder:
        n = 100_000
        spill = SpillBuffer(folder, target=2 * 4 * n + 10_000)
        for number in range(4):
            spill[f"cpu{number}"] = cs.CPU(0).new_like([float(number)] * n)
            tiered = cs.Evictable(cs.CPU(0).new_like([float(number)] * n), cs.FileBacked(dtype=cs.DType.Float32))
            spill[f"evictable{number}"] = tiered
        assert len(spill.fast) <= 2 and len(spill.slow) >= 6
        for number in range(4):
            for kind in ("cpu", "evictable"):
                back = spill[f"{kind}{number}"]
                assert back.tolist() == [float(number)] * n and type(back).__name__.lower() == kind
    """
    run_child(textwrap.dedent(code), env=installed)


def test_twins_are_others():
    """A copy or what pickle makes has a token of its own."""
    carrier = cs.CPU(0).new_like([1.0])
    tokens = {tokenize(c) for c in (carrier, copy.copy(carrier), copy.deepcopy(carrier))}
    tokens.add(tokenize(pickle.loads(pickle.dumps(carrier))))
    assert len(tokens) == 4
