// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/collect.hpp"

#include <typeinfo>

#include "carrier/cpu.hpp"
#include "carrier/evictable.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "carrier/metal.hpp"
#include "python/foreign.hpp"

namespace carrier::python {

int visit(const Ref<Carrier>& ref, visitproc visit, void* arg) {
    if (!ref) return 0;
    if (void* known = ref->host_object()) {
        Py_VISIT(static_cast<PyObject*>(known));
        return 0;
    }
    return ref->cpp_references() == 1 ? visit_tiers(*ref, visit, arg) : 0;
}

int visit_tiers(const Carrier& carrier, visitproc visitor, void* arg) {
    const auto* hierarchy = dynamic_cast<const Evictable*>(&carrier);
    if (hierarchy == nullptr) return 0;
    if (const int stop = visit(hierarchy->primary(), visitor, arg)) return stop;
    return visit(hierarchy->secondary(), visitor, arg);
}

void overlook(const Carrier& carrier, PyObject* self) noexcept {
    const std::type_info& kind = typeid(carrier);
    const bool alone =
        kind == typeid(CPU) || kind == typeid(Generic) || kind == typeid(FileBacked) || kind == typeid(Metal);
    if (alone && !has_owner(carrier)) PyObject_GC_UnTrack(self);
}

int traverse_type(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    return 0;
}

}  // namespace carrier::python
