// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "carrier/carrier.hpp"
#include "carrier/layout.hpp"
#include "carrier/tensor.hpp"
#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"

/// Names for values as they are now, for those who cache results: dask.
///
/// A token is the process, the carrier's serial number and its version. Serial numbers start anew in each
/// process, and a forked child goes on with its parent's, so the process has a random name of its own.
namespace carrier::python {

namespace {

PyObject* process_name = nullptr;  // for the life of the process

void name_process() {
    nb::object name = nb::module_::import_("secrets").attr("token_hex")(16);
    Py_XSETREF(process_name, name.release().ptr());
}

/// The name is made when it is first needed, and again in a child.
nb::object process() {
    if (process_name == nullptr) name_process();
    return nb::borrow(process_name);
}

nb::tuple token_of(const Carrier& carrier) {
    return nb::make_tuple("carrier_storage.Carrier", process(), carrier.serial(), carrier.version());
}

nb::tuple carrier_token(nb::handle self) {
    return token_of(require_instance<Carrier>(self, "self", "Carrier"));
}

nb::tuple tensor_token(nb::handle self) {
    const auto& tensor = require_instance<Tensor>(self, "self", "Tensor");
    nb::list parts;
    for (const Subtensor& s : tensor.subtensors())
        parts.append(nb::make_tuple(token_of(*s.carrier), s.offset, s.layout.repr()));
    nb::list between;
    for (const Layout& layout : tensor.adjacent()) between.append(layout.repr());
    return nb::make_tuple("carrier_storage.Tensor", tensor.dtype().name(), nb::tuple(parts),
                          nb::tuple(between));
}

template <class T, class Function>
void define(const Function& function, const char* doc) {
    nb::borrow<nb::class_<T>>(nb::type<T>())
        .def("__dask_tokenize__", function, nb::sig("def __dask_tokenize__(self) -> tuple[typing.Any, ...]"),
             doc);
}

}  // namespace

void bind_tokens(nb::module_&) {
    nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") =
                                                            nb::cpp_function([] { Py_CLEAR(process_name); }));
    define<Carrier>(&carrier_token,
                    R"(What dask knows the values by: this carrier, in this process, at this version.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> before = c.__dask_tokenize__()
>>> before == c.__dask_tokenize__()
True
>>> c[0] = 1.0
>>> before == c.__dask_tokenize__()
False
)");
    define<Tensor>(&tensor_token, "What dask knows the values by: the carriers' tokens, and the layouts.");
}

}  // namespace carrier::python
