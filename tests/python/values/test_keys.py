# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Keys of layouts and Tensors against the definition: first mode fastest, an integer for any whole mode."""

import copy
import math
import pickle

import carrier_storage as cs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers import named
from values.oracle import I32

modes = st.recursive(st.integers(1, 4), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
shapes = st.lists(modes, max_size=4)
keys = st.recursive(st.integers(-1, 5), lambda inner: st.lists(inner, max_size=4), max_leaves=6)


class Wide:
    """An integer that no short way takes."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def spelled(key, leaf, nest):
    return leaf(key) if isinstance(key, int) else nest(spelled(item, leaf, nest) for item in key)


SPELLINGS = [
    lambda key: spelled(key, int, list),
    lambda key: spelled(key, int, tuple),
    lambda key: spelled(key, Wide, list),
    lambda key: spelled(key, Wide, iter),
    lambda key: spelled(key, lambda k: bool(k) if k in (0, 1) else k, tuple),
]


def size(shape):
    return shape if isinstance(shape, int) else math.prod(map(size, shape))


def strides(shape, numbers):
    return next(numbers) if isinstance(shape, int) else [strides(mode, numbers) for mode in shape]


def slot(shape, stride, key):
    """What `Layout.index` is defined to be; ValueError outside its domain."""
    if not isinstance(key, int):
        if isinstance(shape, int) or len(key) != len(shape):
            raise ValueError(key)
        return sum(map(slot, shape, stride, key))
    if not 0 <= key < size(shape):
        raise ValueError(key)
    if isinstance(shape, int):
        return key * stride
    total = 0
    for mode, step in zip(shape, stride, strict=True):
        total += slot(mode, step, key % size(mode))
        key //= size(mode)
    return total


def outcome(call):
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error)


@st.composite
def layouts(draw):
    shape = draw(shapes)
    numbers = iter(draw(st.lists(st.integers(0, 5), min_size=16, max_size=16)))
    return shape, strides(shape, numbers)


@given(layouts(), st.one_of(keys, st.lists(st.integers(0, 3), max_size=4), st.integers(-2, 300)))
def test_every_spelling_of_a_key_names_the_defined_slot(layout, key):
    shape, stride = layout
    want = outcome(lambda: slot(shape, stride, key))
    made = cs.Layout(cs.Shape(shape), cs.Stride(stride))
    tensor = cs.Tensor(cs.CPU(0, dtype=I32).new_like(range(2, made.cosize + 2)), 0, made)
    for spell in SPELLINGS:
        assert outcome(lambda spell=spell: made.index(spell(key))) == want
        assert outcome(lambda spell=spell: made(spell(key))) == want
        value = want if isinstance(want, type) else want + 2
        assert outcome(lambda spell=spell: tensor[spell(key)]) == value
        assert outcome(lambda spell=spell: tensor.__setitem__(spell(key), 7)) == (
            want if isinstance(want, type) else None
        )
        if not isinstance(want, type):
            assert tensor.carrier[want] == 7
            tensor.carrier[want] = value


@given(layouts())
def test_cosize_is_one_more_than_the_greatest_slot(layout):
    shape, stride = layout
    assume(size(shape) <= 2000)
    made = cs.Layout(cs.Shape(shape), cs.Stride(stride))
    slots = [slot(shape, stride, i) for i in range(made.size)]
    assert made.size == size(shape) and made.cosize == max(slots) + 1
    assert made.is_injective == (len(set(slots)) == len(slots))
    assert [made(i) for i in range(made.size)] == slots


@given(shapes)
def test_modes_come_back_from_repr_and_pickle(tree):
    for made in (cs.Shape(tree), cs.Stride(tree), cs.Layout(cs.Shape(tree), cs.Stride(tree))):
        assert eval(repr(made), {"Shape": cs.Shape, "Stride": cs.Stride, "Layout": cs.Layout}) == made
        assert copy.deepcopy(made) is made
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(made, protocol)) == made


@pytest.mark.parametrize("key", ["0", b"0", 1.0, None, ("0",), ([1.0],), {"a": 1}, object()], ids=named)
def test_what_is_no_integer_is_a_type_error_before_the_state(key):
    layout = cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1))
    carrier = cs.CPU(6)
    tensor = cs.Tensor(carrier, 0, layout)
    carrier.release()
    with pytest.raises(TypeError):
        layout.index(key)
    with pytest.raises(TypeError):
        tensor[key]
    with pytest.raises(TypeError):
        tensor[key] = 1.0


def test_a_key_that_releases_the_carrier():
    carrier = cs.CPU(6)
    tensor = cs.Tensor(carrier, 0, cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1)))

    class Releasing:
        def __index__(self):
            carrier.release()
            return 1

    with pytest.raises(RuntimeError):
        tensor[Releasing(), 1]


@pytest.mark.parametrize("key", [(2**63, 0), (2**70, 0), (-(2**70), 0), 2**70, -(2**70)], ids=repr)
def test_a_key_of_any_magnitude_is_only_outside(key):
    layout = cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1))
    with pytest.raises(ValueError):
        layout.index(key)
    with pytest.raises(ValueError):
        cs.Tensor(cs.CPU(6), 0, layout)[key]


def test_a_key_that_contains_itself():
    key = []
    key.append(key)
    with pytest.raises(ValueError):
        cs.Layout(cs.Shape(2), cs.Stride(1)).index(key)


def test_a_list_that_changes_while_it_is_read():
    key = [0, 1]

    class Shrinking:
        def __index__(self):
            key.clear()
            return 0

    key[0] = Shrinking()
    with pytest.raises(ValueError):
        cs.Layout(cs.Shape(2, 3), cs.Stride(3, 1)).index(key)
