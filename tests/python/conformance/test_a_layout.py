# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions A: Shape, Stride and Layout."""

import itertools
import math

import carrier_storage as cs
import pytest
from carrier_storage import Layout, Shape, Stride

from customs import IndexLike

TREES = [(), (4,), (2, 3), (2, [3, 4]), ([2, 3],), ([[2]], 1), ([2, [3, [2]]], 2)]


def build(cls, tree):
    return cls(*tree) if len(tree) != 1 or isinstance(tree[0], int) else cls(list(tree))


def leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for item in tree for leaf in leaves(item)]


def reference(shape, stride, index):
    """The slot of a logical index: the first mode fastest, recursively."""
    total = 0
    for extent, step in zip(leaves(shape), leaves(stride), strict=True):
        total += index % extent * step
        index //= extent
    return total


def same_tree(tree, numbers):
    """`tree` with its leaves taken from an iterator."""
    return next(numbers) if isinstance(tree, int) else [same_tree(item, numbers) for item in tree]


def test_spread_and_single_iterable_are_equal():
    """One iterable and the same items spread are equal, so Shape(2) == Shape([2])."""
    for cls in (Shape, Stride):
        assert (
            cls(2, [3, 4])
            == cls([2, [3, 4]])
            == cls((2, (3, 4)))
            == cls(iter([2, [3, 4]]))
            == cls(2, iter([3, 4]))
        )
        assert cls(2) == cls([2]) == cls((2,))
        assert cls(2, 3) == cls([2, 3]) == cls(range(2, 4))
        assert cls() == cls([]) == cls(())


def test_a_single_iterable_is_the_list_of_modes_once():
    """Shape([[2, 3]]) is one nested mode, differs from Shape(2, 3), and its repr keeps the outer list."""
    for cls in (Shape, Stride):
        assert cls([[2, 3]]) != cls(2, 3)
        assert cls([[2, 3]]) != cls([2, 3])
        assert eval(repr(cls([[2, 3]]))) == cls([[2, 3]])
        assert "[[2, 3]]" in repr(cls([[2, 3]]))


def test_equality_is_structural():
    """Equality is structural, nesting included; equal objects have equal hashes."""
    for cls in (Shape, Stride):
        made = [build(cls, t) for t in TREES]
        again = [build(cls, t) for t in TREES]
        for (i, a), (j, b) in itertools.product(enumerate(made), enumerate(again)):
            assert (a == b) is (i == j) and (a != b) is (i != j)
            if i == j:
                assert hash(a) == hash(b)
        assert cls(4) != cls([2, 2]) and cls(2, 2) != cls([[2, 2]])
        assert cls(2) != 2 and cls(2) != [2] and cls(2) != (2,)
    assert Shape(2) != Stride(2)


@pytest.mark.parametrize("tree", TREES)
def test_repr_evaluates_back(tree):
    """repr evaluates back to an equal object."""
    shape, stride = build(Shape, tree), build(Stride, tree)
    assert eval(repr(shape)) == shape and eval(repr(stride)) == stride
    layout = Layout(shape, stride)
    assert eval(repr(layout)) == layout and hash(eval(repr(layout))) == hash(layout)


def test_no_mode_has_one_index():
    """Shape() has no mode and one index."""
    layout = Layout(Shape(), Stride())
    assert (layout.size, layout.cosize, layout.index(0), layout(0)) == (1, 1, 0, 0)
    assert layout.is_injective
    with pytest.raises(ValueError):
        layout.index(1)


def test_extents_and_strides_have_bounds():
    """Extents are at least 1 and strides at least 0 (ValueError)."""
    for bad in (0, -1, -(2**70)):
        with pytest.raises(ValueError):
            Shape(bad)
        with pytest.raises(ValueError):
            Shape(2, [3, bad])
    for bad in (-1, -(2**70)):
        with pytest.raises(ValueError):
            Stride(bad)
        with pytest.raises(ValueError):
            Stride(0, [bad])
    assert Stride(0) == Stride([0])


def test_leaves_take_the_index_protocol():
    """Leaves take the integer-index protocol, and bool is refused (TypeError)."""
    for cls in (Shape, Stride):
        assert cls(IndexLike(2), [IndexLike(3)]) == cls(2, [3])
        for bad in (True, False, 1.0, None, object(), "2", b"2"):
            with pytest.raises(TypeError):
                cls(bad, 2)
            with pytest.raises(TypeError):
                cls(2, [bad])
        with pytest.raises(TypeError):
            cls(True)
        with pytest.raises(TypeError):
            cls([True])
        with pytest.raises(TypeError):
            cls(None)


def test_numpy_leaves():
    """Leaves: NumPy's integers included; numpy.bool_ has no __index__."""
    np = pytest.importorskip("numpy")
    assert Shape(np.int64(2), [np.uint8(3)]) == Shape(2, [3])
    assert Shape(np.array([2, 3])) == Shape(2, 3)
    with pytest.raises(TypeError):
        Shape(np.bool_(True))
    with pytest.raises(TypeError):
        Shape(np.float32(2))


def test_what_does_not_fit_63_bits():
    """A product or span that does not fit 63 bits is an OverflowError."""
    for modes in ((2**62, 2), (2**32, 2**31), (2**63,), (2**70,), (3,) * 40):
        with pytest.raises(OverflowError):
            Shape(*modes)
    assert Layout(Shape(2**62), Stride(1)).size == 2**62
    for shape, stride in (
        (Shape(3), Stride(2**62)),
        (Shape(2, 2), Stride(2**62, 2**62)),
        (Shape(2**40), Stride(2**40)),
    ):
        with pytest.raises(OverflowError):
            Layout(shape, stride)
    with pytest.raises(OverflowError):
        Layout(Shape(2), Stride(2**63))


def test_deep_nesting_does_not_crash():
    """Nothing aborts: absurdly nested arguments are refused or work."""
    deep = [2]
    for _ in range(100_000):
        deep = [deep]
    for cls in (Shape, Stride):
        with pytest.raises((ValueError, RecursionError, OverflowError)):
            cls(deep)
    loop = []
    loop.append(loop)
    with pytest.raises((ValueError, RecursionError)):
        Shape(loop)
    while deep != [2]:
        deep = deep[0]


def test_errors_of_iterables_pass_through():
    """User code that runs inside a call may raise."""

    def source():
        yield 2
        raise LookupError("mine")

    for cls in (Shape, Stride):
        with pytest.raises(LookupError, match="mine"):
            cls(source())
        with pytest.raises(LookupError, match="mine"):
            cls(2, source())
        with pytest.raises(TypeError):
            cls([2], "3")


def test_the_same_tree_on_both_sides():
    """Layout(shape, stride): same tree on both sides, else ValueError; other types TypeError."""
    for shape, stride in (
        (Shape(2), Stride(1, 2)),
        (Shape(2, 3), Stride(1)),
        (Shape(2, 3), Stride([[1, 2]])),
        (Shape([[2, 3]]), Stride(1, 2)),
        (Shape(), Stride(1)),
        (Shape(2, [3, 4]), Stride([1, 2], 3)),
    ):
        with pytest.raises(ValueError):
            Layout(shape, stride)
    for args in ((2, 1), ([2], [1]), (Stride(2), Shape(1)), (Shape(2), None), (Shape(2),), ()):
        with pytest.raises(TypeError):
            Layout(*args)
    assert Layout(shape=Shape(2), stride=Stride(1)) == Layout(Shape(2), Stride(1))


def test_the_first_mode_is_fastest():
    """Layout(Shape(2,3),Stride(3,1)) sends 0..5 to 0,3,1,4,2,5."""
    layout = Layout(Shape(2, 3), Stride(3, 1))
    assert [layout.index(i) for i in range(6)] == [0, 3, 1, 4, 2, 5] == [layout(i) for i in range(6)]


@pytest.mark.parametrize("tree", TREES)
def test_integer_keys_follow_the_recursion(tree):
    """key is an integer (first mode fastest, recursively)."""
    steps = same_tree(list(tree), itertools.cycle([5, 0, 1, 7, 2]))
    layout = Layout(build(Shape, tree), build(Stride, steps))
    size = math.prod(leaves(tree))
    assert layout.size == size
    want = [reference(tree, steps, i) for i in range(size)]
    assert [layout.index(i) for i in range(size)] == want
    assert layout.cosize == 1 + max(want)
    assert layout.is_injective is (len(set(want)) == size)


def test_coordinate_trees():
    """key is an integer or a coordinate tree; an integer may stand for any whole mode."""
    layout = Layout(Shape(2, [3, 4]), Stride(12, [4, 1]))
    for a, b, c in itertools.product(range(2), range(3), range(4)):
        slot = 12 * a + 4 * b + c
        for key in ([a, [b, c]], (a, (b, c)), [a, b + 3 * c], (IndexLike(a), [IndexLike(b), c])):
            assert layout.index(key) == layout(key) == slot
        assert layout.index(a + 2 * (b + 3 * c)) == slot
    assert Layout(Shape([[2, 3]]), Stride([[3, 1]])).index([[1, 2]]) == 5
    assert Layout(Shape(), Stride()).index([]) == 0
    assert Layout(Shape(4), Stride(2)).index([3]) == 6


def test_keys_out_of_the_domain():
    """Out of domain: ValueError; coordinates of another form as well."""
    layout = Layout(Shape(2, [3, 4]), Stride(12, [4, 1]))
    bad = [
        -1,
        24,
        2**31,
        2**63,
        2**70,
        -(2**70),
        [2, 0],
        [-1, 0],
        [0, 12],
        [0, [3, 0]],
        [0, [0, 4]],
        [0, 2**70],
    ]
    bad += [[0], [0, 0, 0], [0, [0]], [0, [0, 0, 0]], [[0], 0], []]
    for key in bad:
        with pytest.raises(ValueError):
            layout.index(key)
        with pytest.raises(ValueError):
            layout(key)


def test_keys_that_are_no_integers():
    """Not an integer: TypeError; decision D: bool is refused for layout leaves and taken for indices."""
    layout = Layout(Shape(2, 3), Stride(3, 1))
    for key in (1.0, None, "1", object(), [0, 1.0], [None, 0], [0, "1"]):
        with pytest.raises(TypeError):
            layout.index(key)
        with pytest.raises(TypeError):
            layout(key)
    with pytest.raises(TypeError):
        layout.index()


def test_index_errors_pass_through():
    """User code inside index() may raise."""
    layout = Layout(Shape(2, 3), Stride(3, 1))

    def fail():
        raise LookupError("mine")

    for key in (IndexLike(0, fail), [0, IndexLike(0, fail)]):
        with pytest.raises(LookupError):
            layout.index(key)


def test_properties():
    """.shape .stride .size .cosize .is_injective are plain immutable answers."""
    shape, stride = Shape(2, [3, 4]), Stride(0, [4, 1])
    layout = Layout(shape, stride)
    assert layout.shape == shape and layout.stride == stride
    assert (layout.size, layout.cosize, layout.is_injective) == (24, 12, False)
    for name in ("shape", "stride", "size", "cosize", "is_injective"):
        with pytest.raises(AttributeError):
            setattr(layout, name, 1)


def test_equality_of_layouts():
    """Equality, hash: both sides count."""
    a = Layout(Shape(2, 3), Stride(3, 1))
    assert a == Layout(Shape(2, 3), Stride(3, 1)) and hash(a) == hash(Layout(Shape([2, 3]), Stride([3, 1])))
    assert a != Layout(Shape(2, 3), Stride(1, 2)) and a != Layout(Shape(3, 2), Stride(3, 1)) and a != "a"
    assert len({a, Layout(Shape(2, 3), Stride(3, 1)), Layout(Shape(6), Stride(1))}) == 2


@pytest.mark.parametrize(
    ("shape", "stride", "injective"),
    [
        (Shape(4), Stride(0), False),
        (Shape(1), Stride(0), True),
        (Shape(2, 1), Stride(1, 0), True),
        (Shape(2, 3), Stride(1, 1), False),
        (Shape(2, 2), Stride(1, 3), True),
        (Shape(3, 2), Stride(2, 3), True),
        (Shape(3, 4), Stride(4, 3), True),
        (Shape(4, 5), Stride(4, 3), False),
        (Shape(2**20, 2**20), Stride(1, 2**20), True),
        (Shape(2**31, 2**31), Stride(2**31, 1), True),
        (Shape(2**30, 2), Stride(1, 5), False),
    ],
)
def test_is_injective_is_exact(shape, stride, injective):
    """is_injective says whether no two indices meet in a slot."""
    assert Layout(shape, stride).is_injective is injective


def test_is_injective_against_enumeration():
    """is_injective and cosize against all slots, for many small layouts."""
    steps = [0, 1, 2, 3, 5]
    for extents in itertools.product([1, 2, 3], repeat=3):
        for strides in itertools.product(steps, repeat=3):
            layout = Layout(Shape(*extents), Stride(*strides))
            slots = [reference(extents, strides, i) for i in range(layout.size)]
            assert layout.is_injective is (len(set(slots)) == len(slots)), layout
            assert layout.cosize == max(slots) + 1


def test_layouts_are_values():
    """Immutable values: no attributes to set, weak notions of identity."""
    for value in (Shape(2), Stride(1), Layout(Shape(2), Stride(1))):
        with pytest.raises((AttributeError, TypeError)):
            value.anything = 1
    assert cs.Layout is Layout
