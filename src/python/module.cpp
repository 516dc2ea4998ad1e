// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/module.hpp"

#include <nanobind/stl/string_view.h>

#include <string_view>

#include "carrier/carrier.hpp"
#include "carrier/file_block.hpp"
#include "carrier/host_block.hpp"
#include "carrier/version.hpp"
#include "python/errors.hpp"

namespace {

/// For tests: carriers and blocks that are alive, whoever holds them. The first call begins the count.
nanobind::dict live() {
    nanobind::dict counts;
    counts["carriers"] = carrier::Carrier::live();
    counts["host_blocks"] = carrier::HostBlock::live();
    counts["file_blocks"] = carrier::FileBlock::live();
    return counts;
}

/// Users meet every public name in the package, whatever module it was made in.
void publish(nanobind::module_& m) {
    m.attr("__version__") = CARRIER_VERSION;
    // Imported alone, the module is being described (its stub is written), and then its names are its own.
    if (nanobind::cast<std::string_view>(m.attr("__name__")).find('.') == std::string_view::npos) return;
    for (auto [name, object] : nanobind::borrow<nanobind::dict>(m.attr("__dict__"))) {
        const bool is_public = nanobind::cast<std::string_view>(name).front() != '_';
        if (!is_public || !PyType_Check(object.ptr())) continue;
        object.attr("__module__") = "carrier_storage";
#if !defined(Py_LIMITED_API)
        // What C++ takes for a CPU must not become another class behind its back (`c.__class__ = Generic`).
        reinterpret_cast<PyTypeObject*>(object.ptr())->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
#endif
    }
}

}  // namespace

NB_MODULE(_core_of_main, m) {
    using namespace carrier::python;
#if defined(CARRIER_LEAK_REPORT)
    nanobind::set_leak_warnings(true);
#else
    // A daemon thread that holds a carrier at exit is no leak, and exit makes no noise.
    nanobind::set_leak_warnings(false);
#endif
    connect_host();
    register_errors();
    bind_memory(m);
    bind_dtype(m);
    bind_layout(m);
    bind_carrier(m);
    bind_tensor(m);
    bind_ownership(m);
    bind_cpu(m);
    bind_generic(m);
    bind_file_backed(m);
    bind_metal(m);
    bind_evictable(m);
    bind_storage_functions(m);
    bind_arrays(m);
    bind_edit(m);
    bind_dlpack(m);
    bind_foreign(m);
    bind_bulk(m);
    bind_tokens(m);
    bind_pickle(m);
    register_exit(m);
    publish(m);
    m.def("_live", &live, nanobind::sig("def _live() -> dict[str, int]"));
}

/// What Python calls to import `_core`. Types, descriptors and caches are one of each in a process: a second
/// interpreter would take them away from the first.
extern "C" NB_EXPORT PyObject* PyInit__core() {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return PyInit__core_of_main();
    PyErr_SetString(
        PyExc_ImportError,
        "carrier_storage works in the main interpreter of a process only; use threads or processes "
        "instead of subinterpreters");
    return nullptr;
}
