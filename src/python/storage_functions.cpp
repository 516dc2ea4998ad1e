// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "carrier/errors.hpp"
#include "carrier/storage_dtype.hpp"
#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

std::vector<const DType*> descriptors(nb::handle accepted) {
    PyObject* made = PyObject_GetIter(accepted.ptr());
    if (made == nullptr) throw nb::python_error();
    const nb::object iterator = nb::steal(made);
    std::vector<const DType*> found;
    while (PyObject* item = PyIter_Next(made)) {
        const nb::object keep = nb::steal(item);
        found.push_back(&require_instance<DType>(keep, "an accepted dtype", "DType"));
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return found;
}

nb::object validate(nb::handle dtype, nb::handle carrier, nb::handle accepted) {
    const DType& candidate = *dtype_of(dtype);
    if (!PyUnicode_Check(carrier.ptr())) throw TypeError("carrier must be a str, not " + class_name(carrier));
    const std::vector<const DType*> table = descriptors(accepted);
    return object_of(validate_storage_dtype(candidate, nb::cast<std::string>(carrier), table));
}

/// Identity alone: whatever is no member is no match, a DType or not.
bool accepts(nb::handle dtype, nb::handle accepted) {
    PyObject* made = PyObject_GetIter(accepted.ptr());
    if (made == nullptr) throw nb::python_error();
    const nb::object iterator = nb::steal(made);
    while (PyObject* item = PyIter_Next(made)) {
        const nb::object keep = nb::steal(item);
        if (keep.is(dtype)) return true;
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return false;
}

/// Where the functions are defined, for their `__module__`: in the package, as its classes are. A function
/// takes the name from its scope, which has to live as long.
nb::module_ home_of(nb::module_& m) {
    const auto name = nb::cast<std::string>(m.attr("__name__"));
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) return m;
    nb::object home = nb::module_::import_("types").attr("ModuleType")(name.substr(0, dot));
    return nb::borrow<nb::module_>(home.release());
}

void define_functions(nb::module_& m) {
    m.def("validate_storage_dtype", &validate, nb::arg("dtype").none(), nb::kw_only(),
          nb::arg("carrier").none(), nb::arg("accepted").none(),
          nb::sig("def validate_storage_dtype(dtype: DType, *, carrier: str, accepted: tuple[DType, ...]) -> "
                  "DType"),
          R"(Return ``dtype`` when it is one of ``accepted``, the same object; otherwise say why not.

``carrier`` is the name that the message uses. Raises TypeError for no DType, ValueError for one that is not accepted; for a
compound dtype it says that one carrier cannot hold several planes.

>>> from carrier_storage import DType, validate_storage_dtype
>>> validate_storage_dtype(DType.Int32, carrier="Mine", accepted=(DType.Float32, DType.Int32))
DType.Int32
)");
    m.def("accepts_storage_dtype", &accepts, nb::arg("dtype").none(), nb::arg("accepted").none(),
          nb::sig("def accepts_storage_dtype(dtype: object, accepted: tuple[DType, ...]) -> bool"),
          R"(Whether ``dtype`` is one of ``accepted``, the same object.

>>> from carrier_storage import DType, accepts_storage_dtype
>>> accepts_storage_dtype(DType.Floating, (DType.Float32,))
False
)");
    m.def(
        "storage_zero", [](nb::handle dtype) { return object_of(storage_zero(*dtype_of(dtype))); },
        nb::arg("dtype").none(), nb::sig("def storage_zero(dtype: DType) -> float | int | bool | None"),
        R"(What a fresh slot holds: 0.0 for Float32, 0 for Int32, False for Bool, None for every other dtype.

>>> from carrier_storage import DType, storage_zero
>>> storage_zero(DType.Bool), storage_zero(DType.Any)
(False, None)
)");
}

}  // namespace

void bind_storage_functions(nb::module_& m) {
    nb::module_ home = home_of(m);
    define_functions(home);
    for (const char* name : {"validate_storage_dtype", "accepts_storage_dtype", "storage_zero"})
        m.attr(name) = home.attr(name);
}

}  // namespace carrier::python
