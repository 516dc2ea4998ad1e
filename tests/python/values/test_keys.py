# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Keys of layouts and Tensors: the short ways for integers and flat coordinates against the general one."""

import math

import carrier_storage as cs
from hypothesis import given
from hypothesis import strategies as st

from values.oracle import I32

modes = st.recursive(st.integers(1, 4), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
trees = st.lists(modes, max_size=4)


class Wide:
    """An integer that no short way takes."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def size(tree):
    return tree if isinstance(tree, int) else math.prod(map(size, tree))


def steps_like(tree, draw):
    return draw(st.integers(0, 5)) if isinstance(tree, int) else [steps_like(item, draw) for item in tree]


def outcome(call):
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error)


@given(st.data(), trees)
def test_short_ways_agree_with_the_general_one(data, tree):
    layout = cs.Layout(cs.Shape(tree), cs.Stride(steps_like(tree, data.draw)))
    carrier = cs.CPU(0, dtype=I32).new_like(range(layout.cosize))
    tensor = cs.Tensor(carrier, 0, layout)
    key = data.draw(st.lists(st.integers(-1, 5), min_size=0, max_size=5))
    want = outcome(lambda: layout.index([Wide(k) for k in key]))
    assert outcome(lambda: layout.index(key)) == outcome(lambda: layout(tuple(key))) == want
    assert outcome(lambda: tensor[tuple(key)]) == outcome(lambda: tensor[key]) == want
    logical = data.draw(st.integers(-2, size(tree) + 1))
    want = outcome(lambda: layout.index(Wide(logical)))
    assert outcome(lambda: layout.index(logical)) == outcome(lambda: tensor[logical]) == want


@given(trees)
def test_modes_come_back_from_repr_and_pickle(tree):
    import copy
    import pickle

    from carrier_storage import Shape  # noqa: F401 for eval

    shape = cs.Shape(tree)
    assert eval(repr(shape)) == shape and copy.deepcopy(shape) is shape
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(shape, protocol)) == shape
