// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/buffers.hpp"

#include "python/errors.hpp"
#include "python/hand_out.hpp"
#include "python/memory.hpp"
#include "python/slots.hpp"

namespace carrier::python {

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    view->obj = nullptr;
    try {
        const HandOut own = lent(ready(self));
        const nb::object memory = memory_of(own.block, own.encoding, own.offset, own.slots, false);
        return PyObject_GetBuffer(memory.ptr(), view, flags);
    } catch (...) {
        raise_current();
        return -1;
    }
}

}  // namespace carrier::python
