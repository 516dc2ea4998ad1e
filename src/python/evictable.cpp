// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/evictable.hpp"

#include <nanobind/nanobind.h>

#include "python/arguments.hpp"
#include "python/collect.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"
#include "python/shortcut.hpp"

namespace carrier::python {

namespace {

Evictable& self_of(nb::handle self) { return require_instance<Evictable>(self, "self", "Evictable"); }

void initialize(nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"primary", true}, {"secondary", true}};
    require_fresh<Evictable>(self, "Evictable");
    const auto [primary, secondary] = bind_arguments("Evictable", parameters, 2, args, kwargs);
    Ref<Carrier> upper(&require_instance<Carrier>(primary, "primary", "Carrier"));
    Ref<Carrier> lower(&require_instance<Carrier>(secondary, "secondary", "Carrier"));
    void* memory = require_fresh<Evictable>(self, "Evictable");
    adopt(new (memory) Evictable(std::move(upper), std::move(lower)), self);
}

vectorcallfunc call_generally = nullptr;

/// `Evictable(primary, secondary)`, of two carriers.
PyObject* call(PyObject* type, PyObject* const* arguments, std::size_t given, PyObject* names) {
    const bool two = PyVectorcall_NARGS(given) == 2 && names == nullptr;
    Carrier* const primary = two ? instance_of<Carrier>(arguments[0]) : nullptr;
    Carrier* const secondary = two ? instance_of<Carrier>(arguments[1]) : nullptr;
    if (primary == nullptr || secondary == nullptr) return call_generally(type, arguments, given, names);
    return constructed<Evictable>(type, Ref<Carrier>(primary), Ref<Carrier>(secondary));
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? visit_tiers(*nb::inst_ptr<Evictable>(self), visit, arg) : 0;
}

int clear(PyObject* self) noexcept {
    if (nb::inst_ready(self)) nb::inst_ptr<Evictable>(self)->abandon();
    return 0;
}

PyType_Slot slots[] = {
    {Py_tp_methods, closed_methods},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
};

constexpr std::uint32_t kPooled = 1024;

}  // namespace

void bind_evictable(nb::module_& m) {
    nb::class_<Evictable, Carrier> c(
        m, "Evictable", nb::type_slots(slots), nb::is_final(), nb::pooled(kPooled),
        nb::sig("@typing.final\nclass Evictable(Carrier)"),
        R"(Two carriers as one: values live on ``primary`` and can be moved down and up again.

Promoted at first: reads and writes go to the primary. ``evict()`` moves the values to the secondary and gives the
primary's storage up; reads and writes are then RuntimeErrors until ``promote()``. The hierarchy owns both tiers, any two
kinds of one dtype, itself among them. Its version and mutability are those that count; moves never advance the version,
and every bit survives them.

Raises TypeError (arguments, different dtypes), RuntimeError (a tier released, owned or evicted; secondary not mutable),
ValueError (one carrier twice, empty primary, secondary that cannot hold the dtype).

>>> from carrier_storage import CPU, DType, Evictable, FileBacked
>>> h = Evictable(CPU(3), FileBacked(dtype=DType.Float32))
>>> h[1] = 2.5
>>> h.evict()
>>> h
Evictable(size=3, dtype=Float32, mutable=True, version=1, evicted)
>>> h.promote()
>>> list(h)
[0.0, 2.5, 0.0]
)");
    c.def("__init__", &initialize,
          nb::sig("def __init__(self, primary: Carrier, secondary: Carrier) -> None"))
        .def_prop_ro(
            "primary", [](nb::handle self) { return self_of(self).primary(); },
            nb::sig("def primary(self, /) -> Carrier"),
            R"(The upper tier: where the values are while promoted, and a released carrier while evicted.

>>> from carrier_storage import CPU, Evictable
>>> top = CPU(1)
>>> Evictable(top, CPU(1)).primary is top
True
)")
        .def_prop_ro(
            "secondary", [](nb::handle self) { return self_of(self).secondary(); },
            nb::sig("def secondary(self, /) -> Carrier"),
            R"(The lower tier: where the values are while evicted.

>>> from carrier_storage import CPU, Evictable
>>> bottom = CPU(1)
>>> Evictable(CPU(1), bottom).secondary is bottom
True
)")
        .def(
            "is_evicted", [](nb::handle self) { return self_of(self).is_evicted(); },
            nb::sig("def is_evicted(self) -> bool"),
            R"(Whether the values are on the secondary tier.

>>> from carrier_storage import CPU, Evictable
>>> Evictable(CPU(1), CPU(1)).is_evicted()
False
)")
        .def(
            "evict", [](nb::handle self) { self_of(self).evict(); }, nb::sig("def evict(self) -> None"),
            R"(Move the values down and give the primary's storage up. Nothing to do when evicted.

The secondary is reused when it is large enough, else replaced by a fresh one of its kind. Any error (full disk, out of
memory, a tier that raises, Ctrl-C) leaves everything as it was. RuntimeError when released or owned.

>>> from carrier_storage import CPU, DType, Evictable, FileBacked
>>> h = Evictable(CPU(3), FileBacked(dtype=DType.Float32))
>>> h.evict()
>>> h.primary.is_released(), h.secondary.size()
(True, 3)
)")
        .def(
            "promote", [](nb::handle self) { self_of(self).promote(); }, nb::sig("def promote(self) -> None"),
            R"(Move the values up and give the secondary's storage up. Nothing to do when promoted.

Any error leaves everything as it was. RuntimeError when released or owned.

>>> from carrier_storage import CPU, Evictable
>>> h = Evictable(CPU(3), CPU(3))
>>> h.evict()
>>> h.promote()
>>> h.is_evicted()
False
)");
    call_generally = shorten(c, call);
}

}  // namespace carrier::python
