// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/generic.hpp"

#include <nanobind/nanobind.h>

#include "carrier/inner.hpp"
#include "python/arguments.hpp"
#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

void initialize(nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"values", true}, {"mutable"}, {"dtype", true}};
    require_fresh<Generic>(self, "Generic");
    const auto [values, writable, dtype] = bind_arguments("Generic", parameters, 1, args, kwargs);
    require_iterable(values);
    const bool is_writable = flag(writable, "mutable", true);
    const DType& wanted = *dtype_of(dtype);
    const Ref<Carrier> filled = fill(Generic::open(wanted, is_writable, expected_count(values)), values);
    void* memory = require_fresh<Generic>(self, "Generic");  // the values may have called __init__ themselves
    Ref<HostBlock> block(static_cast<HostBlock*>(Inner::block(*filled).get()));
    adopt(new (memory) Generic(std::move(block), filled->size(), wanted, is_writable), self);
}

PyType_Slot slots[] = {
    {Py_tp_methods, closed_methods},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_type)},
    {0, nullptr},
};

constexpr std::uint32_t kPooled = 1024;

}  // namespace

void bind_generic(nb::module_& m) {
    nb::class_<Generic, Carrier>(m, "Generic", nb::type_slots(slots), nb::is_final(), nb::pooled(kPooled),
                                 nb::sig("@typing.final\nclass Generic(Carrier)"),
                                 R"(Values in memory of its own. Stores Float32, Int32 and Bool.

``values`` is any iterable; each value is normalized for ``dtype`` before the carrier is there, and a None among them is
a TypeError.

Raises TypeError (arguments, values), ValueError (dtype), OverflowError (values), MemoryError.

>>> from carrier_storage import DType, Generic
>>> list(Generic([1, 2.5], dtype=DType.Float32))
[1.0, 2.5]
)")
        .def("__init__", &initialize,
             nb::sig("def __init__(self, values: collections.abc.Iterable[typing.SupportsFloat | "
                     "typing.SupportsIndex], *, mutable: bool = True, dtype: DType) -> None"));
}

}  // namespace carrier::python
