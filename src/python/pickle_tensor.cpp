// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <vector>

#include "carrier/errors.hpp"
#include "carrier/tensor.hpp"
#include "python/convert.hpp"
#include "python/errors.hpp"
#include "python/pickle.hpp"
#include "python/ref_caster.hpp"

/// A Tensor travels as `_rebuild_tensor(dtype, parts, adjacent)`, with the dtype None for a single subtensor.
namespace carrier::python {

namespace {

nb::object reduce(nb::handle self) {
    const auto& tensor = require_instance<Tensor>(self, "self", "Tensor");
    tensor.size();  // StateError when the garbage collector took the carriers
    const nb::object dtype = tensor.is_single() ? nb::none() : object_of(tensor.dtype());
    return nb::make_tuple(nb::module_::import_("carrier_storage._core").attr("_rebuild_tensor"),
                          nb::make_tuple(dtype, self.attr("subtensors"), self.attr("adjacent")));
}

nb::object reduce_part(nb::handle self) {
    const auto& part = require_instance<Subtensor>(self, "self", "Subtensor");
    return nb::make_tuple(nb::borrow(self.type()),
                          nb::make_tuple(part.carrier, part.offset, Layout(part.layout)));
}

template <class T>
std::vector<T> all_of(nb::handle tuple, const char* name, const char* wanted) {
    if (!PyTuple_Check(tuple.ptr()))
        throw TypeError(std::string(name) + " must be a tuple, not " + class_name(tuple));
    std::vector<T> items;
    for (nb::handle item : nb::borrow<nb::tuple>(tuple))
        items.push_back(require_instance<T>(item, name, wanted));
    return items;
}

/// A function of the C API, since pickle can name those and not nanobind's.
PyObject* rebuild(PyObject*, PyObject* arguments) noexcept {
    try {
        PyObject *dtype = nullptr, *parts = nullptr, *adjacent = nullptr;
        if (PyArg_ParseTuple(arguments, "OOO:_rebuild_tensor", &dtype, &parts, &adjacent) == 0)
            throw nb::python_error();
        const DType* compound = dtype == Py_None ? nullptr : dtype_of(dtype);
        return nb::cast(Tensor::restored(compound, all_of<Subtensor>(parts, "a part", "Subtensor"),
                                         all_of<Layout>(adjacent, "an adjacent layout", "Layout")))
            .release()
            .ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

/// The same Tensor over copies of its carriers, one copy for each of them.
nb::object copy(nb::handle self) {
    const Tensor& tensor = require_instance<Tensor>(self, "self", "Tensor");
    const DType* compound = tensor.is_single() ? nullptr : &tensor.dtype();
    std::vector<Subtensor> parts = tensor.subtensors();
    std::vector<Layout> adjacent = tensor.adjacent();
    const nb::object copy_one = nb::module_::import_("copy").attr("copy");
    std::vector<std::pair<Ref<Carrier>, Ref<Carrier>>> copies;
    for (Subtensor& part : parts) {
        auto known = copies.begin();
        while (known != copies.end() && !(known->first == part.carrier)) ++known;
        if (known == copies.end()) {
            const nb::object made = copy_one(nb::cast(part.carrier));
            Ref<Carrier> onto(&require_instance<Carrier>(made, "the copy of a carrier", "Carrier"));
            known = copies.insert(known, {part.carrier, std::move(onto)});
        }
        part.carrier = known->second;
    }
    return nb::cast(Tensor::restored(compound, std::move(parts), std::move(adjacent)));
}

PyMethodDef functions[] = {{"_rebuild_tensor", rebuild, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_tensor_pickle(nb::module_& m) {
    if (PyModule_AddFunctions(m.ptr(), functions) < 0) throw nb::python_error();
    auto tensor = nb::borrow<nb::class_<Tensor>>(nb::type<Tensor>());
    tensor.def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
    tensor.def("__copy__", &copy, nb::sig("def __copy__(self) -> typing.Self"));
    nb::borrow<nb::class_<Subtensor>>(nb::type<Subtensor>())
        .def("__reduce__", &reduce_part, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace carrier::python
