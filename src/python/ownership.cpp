// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/ownership.hpp"

#include <nanobind/nanobind.h>

#include "python/collect.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"
#include "python/type_slot.hpp"

namespace carrier::python {

namespace {

/// What `token.access()` returns: enters and leaves the scope of its token, any number of times.
struct Access {
    Ref<Ownership> token;
};

int traverse_token(PyObject* self, visitproc visitor, void* arg) noexcept {
    if (const int stop = traverse_type(self, visitor, arg)) return stop;
    return nb::inst_ready(self) ? visit(nb::inst_ptr<Ownership>(self)->carrier(), visitor, arg) : 0;
}

int clear_token(PyObject* self) noexcept {
    if (nb::inst_ready(self)) nb::inst_ptr<Ownership>(self)->abandon();
    return 0;
}

int traverse_access(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const Ref<Ownership>& token = nb::inst_ptr<Access>(self)->token;
    if (token) Py_VISIT(static_cast<PyObject*>(token->host_object()));
    return 0;
}

int clear_access(PyObject* self) noexcept {
    if (nb::inst_ready(self)) nb::inst_ptr<Access>(self)->token = nullptr;
    return 0;
}

PyType_Slot token_slots[] = {
    {Py_tp_traverse, slot(traverse_token)},
    {Py_tp_clear, slot(clear_token)},
    {0, nullptr},
};

PyType_Slot access_slots[] = {
    {Py_tp_traverse, slot(traverse_access)},
    {Py_tp_clear, slot(clear_access)},
    {0, nullptr},
};

}  // namespace

void bind_ownership(nb::module_& m) {
    nb::class_<Access>(m, "_Access", nb::type_slots(access_slots), nb::is_final(),
                       nb::sig("@typing.final\nclass _Access()"), "The access scope of an ownership token.")
        .def(
            "__enter__",
            [](Access& scope) {
                scope.token->enter();
                return scope.token->carrier();
            },
            nb::sig("def __enter__(self) -> Carrier"))
        .def(
            "__exit__", [](Access& scope, const nb::args&) { scope.token->leave(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));

    nb::class_<Ownership>(m, "Ownership", nb::type_slots(token_slots), nb::is_weak_referenceable(),
                          nb::is_final(), nb::sig("@typing.final\nclass Ownership()"),
                          R"(The token of ``Carrier.claim()``: exclusive ownership of one carrier.

While it stands, everybody may read the carrier, and only the access scope may write it, release it or move it between
tiers. It ends with ``relinquish()``, or with the token itself.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> token = c.claim()
>>> c.is_owned()
True
>>> del token
>>> c.is_owned()
False
)")
        .def(
            "access", [](Ownership& token) { return Access{Ref<Ownership>(&token)}; },
            nb::sig("def access(self) -> contextlib.AbstractContextManager[Carrier]"),
            R"(The access scope, for a ``with`` statement that yields the carrier.

Bound to the thread that enters it, and re-entrant. Entering is a RuntimeError when the token is spent or another thread
is inside.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> token = c.claim()
>>> with token.access() as inside:
...     inside is c, c.is_mutable()
(True, True)
)")
        .def(
            "relinquish", [](Ownership& token) { token.relinquish(); },
            nb::sig("def relinquish(self) -> None"),
            R"(Give the carrier back. RuntimeError when the token is spent, or while its scope is open.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> c.claim().relinquish()
>>> c.is_owned()
False
)")
        .def(
            "__reduce__",
            [](Ownership&) -> nb::object {
                throw TypeError("an ownership token cannot be pickled or copied");
            },
            nb::sig("def __reduce__(self) -> typing.NoReturn"));
}

}  // namespace carrier::python
