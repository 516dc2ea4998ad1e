// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/metal.hpp"

#include <nanobind/nanobind.h>

#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

void initialize(nb::handle self, nb::handle size, nb::handle writable, nb::handle dtype, nb::handle empty) {
    require_fresh<Metal>(self, "Metal");
    const bool is_writable = exact_bool(writable, "mutable");
    const bool is_empty = exact_bool(empty, "empty");
    const DType& wanted = *dtype_of(dtype);
    const std::int64_t slots = size_of(size, "size");
    void* memory = require_fresh<Metal>(self, "Metal");  // size's __index__ may have called __init__ itself
    adopt(new (memory) Metal(slots, wanted, is_writable, is_empty), self);
}

PyType_Slot slots[] = {
    {Py_tp_methods, closed_methods},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_type)},
    {0, nullptr},
};

}  // namespace

void bind_metal(nb::module_& m) {
    nb::class_<Metal, Carrier>(
        m, "Metal", nb::type_slots(slots), nb::is_final(), nb::sig("@typing.final\nclass Metal(Carrier)"),
        R"(Memory of an Apple GPU, shared with the host. Stores Float32, Int32 and Bool.

``size`` counts slots, of zeros unless ``empty`` lets the device skip them: then write each slot before reading it. The
Metal runtime is loaded when the first Metal is made; where there is none, that is a RuntimeError that says what is
missing, and nothing else of the package is affected.

Raises TypeError (arguments), ValueError (negative size, dtype), RuntimeError (no Metal), MemoryError, in this order.

>>> from carrier_storage import Metal
>>> Metal(-1)
Traceback (most recent call last):
    ...
ValueError: size must be at least 0; got -1
)")
        .def("__init__", &initialize, nb::arg("size").none(), nb::kw_only(), nb::arg("mutable").none() = true,
             nb::arg("dtype").none() = object_of(DType::Float32()), nb::arg("empty").none() = false,
             nb::sig("def __init__(self, size: typing.SupportsIndex, *, mutable: bool = True, "
                     "dtype: DType = DType.Float32, empty: bool = False) -> None"));
}

}  // namespace carrier::python
