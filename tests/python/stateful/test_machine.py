# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Random histories on every kind against a model in plain Python: whatever happens, both say the same."""

import threading

import carrier_storage as cs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from helpers import line, tensor, values
from kinds import F32, cells
from reference import normalize

SETTINGS = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

ANYTHING = st.one_of(
    st.integers(-(2**33), 2**33),
    st.floats(width=64),
    st.booleans(),
    st.sampled_from([None, "1", 1j, 10**400, 2**31, -(2**31), 2**31 - 1, 0.1, -0.0]),
)


def fitting(dtype):
    return {
        cs.DType.Float32: st.one_of(st.floats(), st.integers(-(2**70), 2**70)),
        cs.DType.Int32: st.integers(-(2**31), 2**31 - 1),
        cs.DType.Bool: st.booleans(),
    }[dtype]


class Model:
    """What a carrier is, without storage."""

    def __init__(self, values, mutable=True):
        self.values, self.mutable = list(values), mutable
        self.version = 0
        self.released = self.owned = self.inside = self.evicted = False

    @property
    def writable(self):
        return self.mutable and (not self.owned or self.inside)

    @property
    def usable(self):
        return not self.released and not self.evicted

    @property
    def accessible(self):
        return not self.owned or self.inside


def machine_for(cell):
    class Machine(RuleBasedStateMachine):
        """One carrier and its model."""

        @initialize(data=st.data(), mutable=st.sampled_from([True, True, True, False]))
        def start(self, data, mutable):
            given = data.draw(st.lists(fitting(cell.dtype), min_size=1, max_size=6), label="values")
            self.c = cell.make(given, mutable=mutable)
            self.m = Model([normalize(v, cell.dtype) for v in given], mutable)
            self.token = self.scope = None

        def expect(self, call, error):
            """The call goes through when there is no error to expect, and raises just that otherwise."""
            if error is None:
                return call()
            with pytest.raises(error) as info:
                call()
            assert (
                info.type is error
                or error is not RuntimeError
                or not issubclass(info.type, NotImplementedError)
            )
            return None

        def write_error(self, index, value):
            if not self.m.usable or not self.m.writable:
                return RuntimeError
            if not 0 <= index < len(self.m.values):
                return IndexError
            try:
                normalize(value, cell.dtype)
            except (TypeError, OverflowError) as error:
                return type(error)
            return None

        @rule(index=st.integers(-1, 7), value=ANYTHING, how=st.sampled_from(["[]", "set_value"]))
        def write(self, index, value, how):
            error = self.write_error(index, value)
            call = {
                "[]": lambda: self.c.__setitem__(index, value),
                "set_value": lambda: self.c.set_value(index, value),
            }[how]
            self.expect(call, error)
            if error is None:
                self.m.values[index] = normalize(value, cell.dtype)
                self.m.version += 1

        @rule(data=st.data())
        def write_what_fits(self, data):
            index = data.draw(st.integers(0, max(0, len(self.m.values) - 1)))
            self.write(index, data.draw(fitting(cell.dtype)), "[]")

        @rule(index=st.integers(-1, 7))
        def read(self, index):
            error = (
                RuntimeError if not self.m.usable else None if 0 <= index < len(self.m.values) else IndexError
            )
            got = self.expect(lambda: self.c[index], error)
            if error is None:
                assert repr(got) == repr(self.m.values[index])

        @rule(data=st.data(), offset=st.integers(-1, 3), step=st.integers(0, 2), own=st.booleans())
        def scatter(self, data, offset, step, own):
            # A source of its own, or the receiver's values; the mapping may reach too far.
            size = data.draw(st.integers(1, max(1, len(self.m.values))))
            if own and self.m.released:
                return
            given = (
                self.m.values[:size]
                if own
                else data.draw(st.lists(fitting(cell.dtype), min_size=size, max_size=size))
            )
            source = tensor(self.c, size) if own else tensor(cs.Generic(given, dtype=cell.dtype))
            mapping = line(size, step)
            if not cell.kind.scatters:
                error = NotImplementedError
            elif not self.m.usable or not self.m.writable:
                error = RuntimeError
            elif offset < 0:
                error = ValueError
            else:
                error = IndexError if offset + mapping.cosize > len(self.m.values) else None
            onto = tensor(cs.CPU(1, dtype=cell.dtype)) if self.m.released else tensor(self.c, 1)
            self.expect(lambda: self.c.scatter(source, onto, mapping, offset), error)
            if error is None:
                for i, value in enumerate([normalize(v, cell.dtype) for v in given]):
                    self.m.values[offset + mapping.index(i)] = value
                self.m.version += 1

        @precondition(lambda self: cell.kind.evictable)
        @rule(down=st.booleans())
        def move(self, down):
            error = RuntimeError if self.m.released or not self.m.accessible else None
            self.expect(self.c.evict if down else self.c.promote, error)
            if error is None:
                self.m.evicted = down

        @precondition(lambda self: hasattr(self.c, "grow"))
        @rule(more=st.integers(-1, 3))
        def grow(self, more):
            size = len(self.m.values) + more
            error = ValueError if more < 0 else None
            if self.m.released or not self.m.writable:
                error = RuntimeError
            self.expect(lambda: self.c.grow(size), error)
            if error is None:
                self.m.values += [cell.zero] * more

        @rule()
        def claim(self):
            error = RuntimeError if self.m.released or self.m.owned else None
            token = self.expect(self.c.claim, error)
            if error is None:
                self.token, self.m.owned = token, True

        @precondition(lambda self: self.token is not None)
        @rule()
        def enter(self):
            if self.scope is None:
                self.scope = self.token.access()
                assert self.scope.__enter__() is self.c
                self.m.inside = True
            else:
                self.scope.__exit__(None, None, None)
                self.scope, self.m.inside = None, False

        @precondition(lambda self: self.token is not None and self.scope is None)
        @rule(drop=st.booleans())
        def relinquish(self, drop):
            if not drop and not self.m.released:
                self.token.relinquish()
            self.token, self.m.owned = None, False

        @rule()
        def bump(self):
            if self.m.evicted:
                return  # the rules leave open whether an evicted hierarchy may count
            error = None if self.m.usable and self.m.writable else RuntimeError
            self.expect(self.c.increment_version, error)
            if error is None:
                self.m.version += 1

        @rule(chance=st.integers(0, 5))
        def release(self, chance):
            if chance:
                return
            error = RuntimeError if not self.m.released and not self.m.accessible else None
            self.expect(self.c.release, error)
            if error is None:
                self.m.released, self.m.values = True, []

        @rule(data=st.data(), mutable=st.booleans(), take=st.booleans())
        def new_like(self, data, mutable, take):
            given = data.draw(st.lists(st.one_of(fitting(cell.dtype), ANYTHING), max_size=4))
            want, error = [], None
            for value in given:
                try:
                    hole = value is None and cell.kind.holes
                    want.append(cell.zero if hole else normalize(value, cell.dtype))
                except (TypeError, OverflowError) as problem:
                    error = type(problem)
                    break
            made = self.expect(lambda: self.c.new_like(given, mutable=mutable), error)
            if error is None:
                assert repr(values(made)) == repr(want) and type(made) is type(self.c)
                assert (made.is_mutable(), made.version) == (mutable, 0)
                if take and want:
                    self.replace(made, Model(want, mutable))

        @rule(size=st.integers(-1, 5), take=st.booleans())
        def allocate_like(self, size, take):
            error = ValueError if size < 0 else None
            made = self.expect(lambda: self.c.allocate_like(size), error)
            if error is None:
                assert repr(values(made)) == repr([cell.zero] * size)
                if take and size:
                    self.replace(made, Model([cell.zero] * size))

        def replace(self, carrier, model):
            if self.scope is not None:
                self.scope.__exit__(None, None, None)
            self.c, self.m = carrier, model
            self.token = self.scope = None

        @rule()
        def look_from_another_thread(self):
            seen = []
            worker = threading.Thread(
                target=lambda: seen.append((self.c.is_mutable(), self.c.is_owned(), self.c.version))
            )
            worker.start()
            worker.join()
            assert seen == [(self.m.mutable and not self.m.owned, self.m.owned, self.m.version)]

        @invariant()
        def both_say_the_same(self):
            c, m = self.c, self.m
            assert (c.size(), len(c), c.version) == (len(m.values), len(m.values), m.version)
            assert (c.is_released(), c.is_owned(), c.is_mutable()) == (m.released, m.owned, m.writable)
            assert c.dtype() is cell.dtype
            if cell.kind.evictable and not m.released:
                assert c.is_evicted() == m.evicted
                assert c.primary.is_released() == m.evicted
                assert (c.secondary if m.evicted else c.primary).is_owned()
            if m.usable:
                assert repr(values(c)) == repr(m.values)

        def teardown(self):
            if getattr(self, "scope", None) is not None:
                self.scope.__exit__(None, None, None)

    return Machine


@pytest.mark.parametrize("cell", cells())
def test_random_histories(cell):
    """Writes good and bad, scatter, moves, growth, ownership, release, factories, versions."""
    run_state_machine_as_test(machine_for(cell), settings=SETTINGS)


def test_the_model_is_a_model():
    """A model that disagrees is noticed: the machine can fail."""
    cell = next(p.values[0] for p in cells(dtypes=(F32,)))
    machine = machine_for(cell)

    class Wrong(machine):
        @invariant()
        def never(self):
            assert self.m.version < 2

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Wrong, settings=settings(SETTINGS, phases=[Phase.generate]))
