// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/buffers.hpp"

#include "python/errors.hpp"
#include "python/hand_out.hpp"
#include "python/memory.hpp"
#include "python/slots.hpp"

namespace carrier::python {

namespace nb = nanobind;

namespace {

/// `numpy.ndarray(..., buffer=carrier)` gives the buffer back at once and uses the memory for as long as it
/// holds the carrier. This is how it asks; everybody else holds on to the buffer.
bool outlives_its_buffer(int flags) noexcept {
    return (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && (flags & PyBUF_FORMAT) == 0;
}

/// Keeps the memory for as long as the carrier lives, even past its release; once for each block.
void keep_with(nb::handle carrier, const Block& block, nb::handle memory) {
    static PyObject* kept = nullptr;  // not made under a guard, which another thread would wait for
    if (kept == nullptr) {
        nb::object fresh = nb::module_::import_("weakref").attr("WeakKeyDictionary")();
        if (kept == nullptr) kept = fresh.release().ptr();
    }
    const nb::object blocks = nb::handle(kept).attr("setdefault")(carrier, nb::dict());
    blocks.attr("setdefault")(reinterpret_cast<std::uintptr_t>(&block), memory);
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    view->obj = nullptr;
    try {
        const HandOut own = lent(ready(self));
        const nb::object memory = memory_of(own.block, own.encoding, own.offset, own.slots, false);
        if (PyObject_GetBuffer(memory.ptr(), view, flags) != 0) return -1;
        if (outlives_its_buffer(flags)) keep_with(self, *own.block, memory);
        return 0;
    } catch (...) {
        if (view->obj != nullptr) PyBuffer_Release(view);
        raise_current();
        return -1;
    }
}

}  // namespace carrier::python
