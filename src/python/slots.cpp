// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/slots.hpp"

#include "python/convert.hpp"
#include "python/errors.hpp"
#include "python/ref_caster.hpp"
#include "python/type_slot.hpp"

namespace carrier::python {

namespace {

#define CARRIER_LIKELY(x) __builtin_expect(!!(x), 1)
#define CARRIER_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CARRIER_SLOW __attribute__((noinline, cold))

/// The fast path's one look at a carrier. A negative index is a huge one here, and so out of range.
inline bool reads_fast(const Hot& hot, Py_ssize_t index) noexcept {
    return !hot.has(Hot::kNoFastRead) && static_cast<std::size_t>(index) < static_cast<std::size_t>(hot.size);
}

inline bool writes_fast(const Hot& hot, Py_ssize_t index) noexcept {
    return hot.state.load(std::memory_order_acquire) == 0 &&
           static_cast<std::size_t>(index) < static_cast<std::size_t>(hot.size);
}

/// One encoding after the other, the usual one first, each known to the compiler.
inline PyObject* read(const Hot& hot, Py_ssize_t index) {
    const auto at = static_cast<std::size_t>(index);
    if (CARRIER_LIKELY(hot.encoding == Encoding::float32))
        return box(Encoding::float32, load_slot(Encoding::float32, hot.data + 4 * at));
    if (hot.encoding == Encoding::int32)
        return box(Encoding::int32, load_slot(Encoding::int32, hot.data + 4 * at));
    return box(Encoding::bool8, load_slot(Encoding::bool8, hot.data + at));
}

CARRIER_SLOW PyObject* get_slow(PyObject* self, PyObject* key) noexcept {
    try {
        const Carrier& carrier = ready(self);
        return object_of(carrier.get_value(index_of(key))).release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

CARRIER_SLOW int set_slow(PyObject* self, PyObject* key, PyObject* value) noexcept {
    try {
        Carrier& carrier = ready(self);
        if (value == nullptr) throw TypeError("slots of a carrier cannot be deleted; its size is fixed");
        const std::int64_t index = index_of(key);
        if (Scalar scalar; fast_unbox(carrier.hot().encoding, value, scalar)) {
            carrier.set_value(index, to_value(carrier.hot().encoding, scalar));  // all checks but the value's
            return 0;
        }
        carrier.require_mutable();
        carrier.require_slot(index);
        // Runs user code, which may release the carrier: set_value looks at everything once more.
        carrier.set_value(index, value_of(carrier, value));
        return 0;
    } catch (...) {
        raise_current();
        return -1;
    }
}

}  // namespace

Carrier& ready(PyObject* self) {
    if (CARRIER_UNLIKELY(!nb::inst_ready(self))) refuse_instance(self, true, "self", "Carrier");
    return *nb::inst_ptr<Carrier>(self);
}

PyObject* get_item(PyObject* self, PyObject* key) {
    Py_ssize_t index = 0;
    if (CARRIER_LIKELY(nb::inst_ready(self) && small_int(key, index))) {
        const Hot& hot = nb::inst_ptr<Carrier>(self)->hot();
        if (CARRIER_LIKELY(reads_fast(hot, index))) return read(hot, index);
    }
    return get_slow(self, key);
}

int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
    Py_ssize_t index = 0;
    if (CARRIER_LIKELY(value != nullptr && nb::inst_ready(self) && small_int(key, index))) {
        Hot& hot = nb::inst_ptr<Carrier>(self)->hot();
        Scalar scalar;
        if (CARRIER_LIKELY(writes_fast(hot, index) && fast_unbox(hot.encoding, value, scalar))) {
            store_slot(hot.encoding, hot.data + static_cast<std::size_t>(index) * slot_bytes(hot.encoding),
                       scalar);
            ++hot.version;
            return 0;
        }
    }
    return set_slow(self, key, value);
}

Py_ssize_t length(PyObject* self) noexcept {
    try {
        return static_cast<Py_ssize_t>(ready(self).size());
    } catch (...) {
        raise_current();
        return -1;
    }
}

// ---- iteration
// --------------------------------------------------------------------------------------------------

namespace {

struct Iterator {
    PyObject head;
    PyObject* carrier;  // null once exhausted
    const Hot* hot;     // the carrier's own, then that of no carrier
    Py_ssize_t next;
    Py_ssize_t step;
};

/// Never readable, as `Hot` begins.
const Hot no_carrier;

PyTypeObject* iterator_type = nullptr;

Iterator* as_iterator(PyObject* self) noexcept { return reinterpret_cast<Iterator*>(self); }

void let_go(Iterator* it) noexcept {
    it->hot = &no_carrier;
    Py_CLEAR(it->carrier);
}

CARRIER_SLOW PyObject* next_slow(Iterator* it) noexcept {
    if (it->carrier == nullptr) return nullptr;
    // The carrier stays alive while hooks and signal handlers run, even if they drop the iterator.
    const nb::object keep = nb::borrow(it->carrier);
    try {
        const Carrier& carrier = ready(it->carrier);
        const Py_ssize_t index = it->next;
        carrier.require_live();
        if (index < 0 || index >= carrier.size()) {
            let_go(it);
            return nullptr;
        }
        PyObject* value = object_of(carrier.get_value(index)).release().ptr();
        it->next = index + it->step;
        return value;
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

PyObject* iterator_next(PyObject* self) {
    Iterator* it = as_iterator(self);
    const Py_ssize_t index = it->next;
    if (CARRIER_UNLIKELY(!reads_fast(*it->hot, index))) return next_slow(it);
    it->next = index + it->step;
    return read(*it->hot, index);
}

PyObject* iterator_length_hint(PyObject* self, PyObject*) noexcept {
    const Iterator* it = as_iterator(self);
    if (it->carrier == nullptr) return PyLong_FromLong(0);
    if (it->step < 0) return PyLong_FromSsize_t(it->next + 1);
    const Py_ssize_t size = length(it->carrier);
    return size < 0 ? nullptr : PyLong_FromSsize_t(size > it->next ? size - it->next : 0);
}

int iterator_traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_iterator(self)->carrier);
    return 0;
}

int iterator_clear(PyObject* self) noexcept {
    let_go(as_iterator(self));
    return 0;
}

void iterator_dealloc(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    let_go(as_iterator(self));
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyMethodDef iterator_methods[] = {
    {"__length_hint__", iterator_length_hint, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* make_iterator(PyObject* carrier, Py_ssize_t next, Py_ssize_t step) noexcept {
    Iterator* it = PyObject_GC_New(Iterator, iterator_type);
    if (it == nullptr) return nullptr;
    it->carrier = Py_NewRef(carrier);
    it->hot = &nb::inst_ptr<Carrier>(carrier)->hot();
    it->next = next;
    it->step = step;
    PyObject_GC_Track(it);
    return reinterpret_cast<PyObject*>(it);
}

}  // namespace

PyObject* iterate(PyObject* self) noexcept {
    try {
        ready(self).require_live();
    } catch (...) {
        raise_current();
        return nullptr;
    }
    return make_iterator(self, 0, 1);
}

PyObject* iterate_reversed(PyObject* self) noexcept {
    Py_ssize_t size = 0;
    try {
        const Carrier& carrier = ready(self);
        carrier.require_live();
        size = static_cast<Py_ssize_t>(carrier.size());
    } catch (...) {
        raise_current();
        return nullptr;
    }
    return make_iterator(self, size - 1, -1);
}

void bind_iterator() {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, slot(iterator_dealloc)},
        {Py_tp_traverse, slot(iterator_traverse)},
        {Py_tp_clear, slot(iterator_clear)},
        {Py_tp_iter, slot(PyObject_SelfIter)},
        {Py_tp_iternext, slot(iterator_next)},
        {Py_tp_methods, iterator_methods},
        {0, nullptr},
    };
    static PyType_Spec spec{"carrier_storage._core.CarrierIterator", static_cast<int>(sizeof(Iterator)), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                Py_TPFLAGS_IMMUTABLETYPE,
                            slots};
    iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (iterator_type == nullptr) throw nb::python_error();
}

}  // namespace carrier::python
