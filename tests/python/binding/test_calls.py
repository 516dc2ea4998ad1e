# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""A call does the same however its arguments are given: the short ways for usual calls differ in nothing but time."""

import inspect
import itertools
import weakref

import pytest
from carrier_storage import CPU, Carrier, DType, Evictable, FileBacked, Generic, Layout, Shape, Stride, Tensor

LINE = Layout(Shape(3), Stride(1))


class Three(int):
    """A subclass of int is no exact int."""


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def outcome(call):
    """What a call gave, as text, or the class and the words of its error."""
    try:
        return repr(call())
    except Exception as error:
        return type(error), str(error)


def slowly(kind, *args, **kwargs):
    """The same object by the two steps that a call of a class stands for."""
    made = kind.__new__(kind)
    made.__init__(*args, **kwargs)
    return made


def same(kind, *args, **kwargs):
    given = outcome(lambda: kind(*args, **kwargs))
    assert given == outcome(lambda: slowly(kind, *args, **kwargs)), (args, kwargs)
    return given


SIZES = [
    (),
    (0,),
    (3,),
    (True,),
    (-1,),
    (Three(3),),
    (Index(3),),
    (Index(ValueError("mine")),),
    (2**40,),
    (2**62,),
    (2**70,),
    (-(2**70),),
    (3.0,),
    ("3",),
    (None,),
    (3, None),
    (3, 0),
    (3, True),
    (3, None, True),
]
OPTIONS = [
    {},
    {"dtype": DType.Int32},
    {"dtype": DType.Bool, "mutable": False},
    {"mutable": False, "empty": False, "dtype": DType.Float32},
    {"dtype": DType.Any},
    {"dtype": DType.Float64},
    {"dtype": None},
    {"dtype": "Float32"},
    {"dtype": DType},
    {"mutable": 1},
    {"mutable": None},
    {"empty": 0},
    {"empty": "no", "dtype": DType.Int32},
    {"pointer": None},
    {"pointer": 0},
    {"size": 3},
    {"size": -3, "dtype": DType.Int32},
    {"unknown": 3},
    {"dtype": DType.Int32, "unknown": 3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_cpu(options):
    """Every mixture of positions and keywords, right and wrong."""
    # Nobody's memory is asked for 2**40 slots of it; these are for the errors.
    given = [same(CPU, *sizes, **options) for sizes in SIZES if sizes != (2**40,)]
    assert len(set(given)) > 1
    if options == {}:
        assert given[2] == "CPU(size=3, dtype=Float32, mutable=True, version=0, live)"
        assert same(CPU, 2**40)[0] is MemoryError


def test_names_of_keywords_need_not_be_those_of_the_program():
    """Keywords count by their letters."""
    name = "".join(["d", "type"])
    assert CPU(3, **{name: DType.Int32}).dtype() is DType.Int32
    assert list(CPU(2, **{"".join(["emp", "ty"]): False, name: DType.Bool})) == [False, False]


def test_owned_memory_is_zero():
    """Fresh memory of any small size is zero, also where others were before."""
    for size in (1, 16, 100, 300, 1000):
        for _ in range(3):
            c = CPU(size)
            assert not any(c)
            c.fill(1.5)


def test_an_odd_size_may_use_the_carrier():
    """A size whose __index__ constructs the very carrier leaves one that is constructed once."""
    c = CPU.__new__(CPU)

    class Nested:
        def __index__(self):
            c.__init__(2)
            return 3

    with pytest.raises(TypeError, match="initialized already"):
        c.__init__(Nested())
    assert len(c) == 2


def test_layouts():
    """Shape, Stride and Layout."""
    items = [(), (1,), (3,), (2, 3), (0,), (-1,), (True,), (2, False), (2**40,), (2**40, 2**40), (2**70,)]
    items += [(Three(3), 2), (Index(2),), ([2, 3],), ([[2, 3]],), (2, [3, 4]), (None,), ("23",), (2, 3.0)]
    items += [tuple(range(1, 12)), (2,) * 62, (2,) * 63]
    for modes, kind in itertools.product(items, (Shape, Stride)):
        same(kind, *modes)
        with pytest.raises(TypeError):
            kind(*modes, items=2)
    assert Shape(2, 3) == Shape([2, 3]) != Shape([[2, 3]])
    shape, stride = Shape(2, 3), Stride(3, 1)
    for pair in [
        (shape, stride),
        (stride, shape),
        (shape, Stride(1)),
        (shape,),
        (),
        (shape, stride, 1),
        (None, None),
    ]:
        same(Layout, *pair)
    same(Layout, shape, stride=stride)
    same(Layout, stride=stride, shape=shape)
    same(Layout, Shape(2**40), Stride(2**40))


def test_tensors():
    """Tensor: by position, by keyword, of what it cannot be made of."""
    c, gone = CPU(8), CPU(8)
    gone.release()
    for onto, offset, layout in itertools.product(
        (c, gone, None, 3, CPU.__new__(CPU)),
        (0, 5, 6, -1, True, Three(1), Index(2), 2**70, 1.0, None),
        (LINE, None, Shape(3)),
    ):
        by_position = same(Tensor, onto, offset, layout)
        assert by_position == outcome(
            lambda o=onto, at=offset, m=layout: Tensor(offset=at, carrier=o, layout=m)
        )
    for wrong in [(), (c,), (c, 0), (c, 0, LINE, 0)]:
        assert same(Tensor, *wrong)[0] is TypeError
    assert same(Tensor, c, 0, LINE, layout=LINE)[0] is TypeError


def test_hierarchies():
    """Evictable: each pair of tiers, by position and by keyword."""

    def tiers():
        released, owned = CPU(2), CPU(2)
        released.release()
        tokens.append(owned.claim())
        values = Generic([1.0, 2.0], dtype=DType.Float32)
        return [
            CPU(2),
            values,
            FileBacked(dtype=DType.Float32),
            released,
            owned,
            CPU(0),
            CPU(2, mutable=False),
        ]

    tokens: list = []
    others = [CPU(1, dtype=DType.Int32), None, CPU, CPU.__new__(CPU)]
    count = len(tiers()) + len(others)
    for i, j in itertools.product(range(count), range(count)):

        def fresh(i=i, j=j):
            made = [*tiers(), *others]
            return made[i], made[j]

        expected = outcome(lambda f=fresh: slowly(Evictable, *f()))
        assert outcome(lambda f=fresh: Evictable(*f())) == expected
        assert (
            outcome(lambda f=fresh: Evictable(**dict(zip(("primary", "secondary"), f(), strict=True))))
            == expected
        )
    for wrong in [(), (CPU(1),), (CPU(1), CPU(1), CPU(1))]:
        assert same(Evictable, *wrong)[0] is TypeError
    assert "missing 1 required positional argument: 'secondary'" in same(Evictable, CPU(1))[1]


NAMES = ("to_scatter", "scatter_onto", "mapping", "mapping_offset")


def test_scatter():
    """By position or by name: the same slots, the same errors, in the same order."""
    source = CPU(0).new_like([1.0, 2.0, 3.0])
    wide = CPU(8)
    foreign, evicted, file = CPU(8), Evictable(CPU(8), CPU(8)), FileBacked(dtype=DType.Float32)
    from_evicted = Tensor(evicted, 0, LINE)
    evicted.evict()
    for to_scatter, onto, mapping, offset in itertools.product(
        (Tensor(source, 0, LINE), from_evicted, None, Tensor.__new__(Tensor)),
        (Tensor(wide, 1, LINE), Tensor(foreign, 0, LINE), 3),
        (
            LINE,
            Layout(Shape(3), Stride(2)),
            Layout(Shape(2), Stride(1)),
            Layout(Shape(3), Stride(5)),
            "mapping",
        ),
        (
            (),
            (0,),
            (1,),
            (True,),
            (5,),
            (-1,),
            (2**70,),
            (Index(2),),
            (Index(KeyError("mine")),),
            (1.5,),
            (None,),
        ),
    ):
        arguments = (to_scatter, onto, mapping, *offset)

        def target():
            wide.fill(0.0)
            return wide

        results = []
        for call in (
            lambda a=arguments: target().scatter(*a),
            lambda a=arguments: Carrier.scatter(target(), *a),
            lambda a=arguments: target().scatter(a[0], **dict(zip(NAMES[1:], a[1:], strict=False))),
            lambda a=arguments: target().scatter(**dict(zip(NAMES, a, strict=False))),
        ):
            before = wide.version
            results.append((outcome(call), wide.version - before, list(wide)))
        assert results[1:] == results[:1] * 3
        # FileBacked refuses whatever the arguments.
        assert outcome(lambda a=arguments: file.scatter(*a))[0] is NotImplementedError


def test_scatter_called_wrong():
    """Too few, too many, unknown and repeated arguments are TypeErrors that show the signature."""
    c = CPU(3)
    t = Tensor(c, 0, LINE)
    calls = [
        lambda: c.scatter(),
        lambda: c.scatter(t),
        lambda: c.scatter(t, t),
        lambda: c.scatter(t, t, LINE, 0, 0),
        lambda: c.scatter(t, t, LINE, offset=0),
        lambda: c.scatter(t, t, LINE, mapping=LINE),
        lambda: Carrier.scatter(),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="scatter.*mapping_offset"):
            call()
    with pytest.raises(TypeError, match="self must be a Carrier, not int"):
        Carrier.scatter(3, t, t, LINE)
    with pytest.raises(TypeError, match="not initialized"):
        CPU.__new__(CPU).scatter(t, t, LINE)
    assert c.version == 0
    assert "mapping_offset" in inspect.getdoc(Carrier.scatter)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CPU(3),
        lambda: Evictable(CPU(3), CPU(3)),
        lambda: Tensor(CPU(3), 0, LINE),
        lambda: Layout(Shape(3), Stride(1)),
        lambda: Shape(3),
        lambda: Stride(3),
    ],
    ids=["CPU", "Evictable", "Tensor", "Layout", "Shape", "Stride"],
)
def test_an_instance_goes_and_leaves_nothing(make):
    """Weak references die with it, and whoever gets its memory next is not constructed by that."""
    made = make()
    kind, ref = type(made), weakref.ref(made)
    del made
    assert ref() is None
    blank = kind.__new__(kind)
    assert "not initialized" in str(outcome(lambda: repr(blank)))
    for use in (len, hash, bool, lambda x: x[0], lambda x: x.size(), lambda x: x.rank, lambda x: x == make()):
        outcome(lambda u=use: u(blank))  # at most an error
