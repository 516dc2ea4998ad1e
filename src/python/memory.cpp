// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/memory.hpp"

#include "python/module.hpp"
#include "python/type_slot.hpp"

namespace carrier::python {

namespace {

struct Memory {
    PyObject head;
    Block* block;  // one reference
    void* address;
    const char* format;
    Py_ssize_t count;
    Py_ssize_t width;
    bool writable;
};

PyTypeObject* memory_type = nullptr;

Memory* as_memory(PyObject* self) noexcept { return reinterpret_cast<Memory*>(self); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    Memory* m = as_memory(self);
    view->obj = nullptr;
    if ((flags & PyBUF_WRITABLE) != 0 && !m->writable) {
        PyErr_SetString(PyExc_BufferError,
                        "the memory of a carrier is handed out read-only; write to it in `with "
                        "carrier.edit() as array:`");
        return -1;
    }
    view->obj = Py_NewRef(self);
    view->buf = m->address;
    view->len = m->count * m->width;
    view->itemsize = m->width;
    view->readonly = m->writable ? 0 : 1;
    view->ndim = 1;
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(m->format) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 ? &m->count : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &m->width : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
    return 0;
}

void deallocate(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    as_memory(self)->block->drop();
    PyObject_Free(self);
    Py_DECREF(type);
}

}  // namespace

const char* format_of(Encoding encoding) noexcept {
    switch (encoding) {
        case Encoding::float32:
            return "f";
        case Encoding::int32:
            return "i";
        default:
            return "?";
    }
}

nb::object memory_of(Ref<Block> block, Encoding encoding, std::size_t offset, std::int64_t count,
                     bool writable) {
    Memory* m = PyObject_New(Memory, memory_type);
    if (m == nullptr) throw nb::python_error();
    m->address = block->data() + offset;
    m->block = block.detach();
    m->format = format_of(encoding);
    m->count = static_cast<Py_ssize_t>(count);
    m->width = static_cast<Py_ssize_t>(slot_bytes(encoding));
    m->writable = writable;
    return nb::steal(reinterpret_cast<PyObject*>(m));
}

nb::object memoryview_of(Ref<Block> block, Encoding encoding, std::size_t offset, std::int64_t count,
                         bool writable) {
    const nb::object memory = memory_of(std::move(block), encoding, offset, count, writable);
    nb::object view = nb::steal(PyMemoryView_FromObject(memory.ptr()));
    if (!view.is_valid()) throw nb::python_error();
    return view;
}

void bind_memory(nb::module_&) {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, slot(deallocate)},
        {Py_bf_getbuffer, slot(get_buffer)},
        {0, nullptr},
    };
    static PyType_Spec spec{"carrier_storage._core.Memory", static_cast<int>(sizeof(Memory)), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                            slots};
    memory_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (memory_type == nullptr) throw nb::python_error();
}

}  // namespace carrier::python
