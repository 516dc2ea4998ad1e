// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/trees.hpp"

#include <limits>
#include <string>
#include <vector>

#include "carrier/errors.hpp"
#include "python/convert.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

struct Rule {
    const char* what;
    bool key;
};

[[noreturn]] void refuse(const Rule& rule, nb::handle object) {
    throw TypeError(std::string(rule.what) + " takes integers and nested lists of them, not " +
                    class_name(object));
}

bool is_text(PyObject* object) noexcept {
    return PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object);
}

IntTree leaf(const nb::object& exact, const Rule& rule) {
    if (rule.key) return IntTree(index_of(exact));
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    // A number below every bound is out of bounds, however far.
    if (overflow < 0) return IntTree(std::numeric_limits<std::int64_t>::min());
    if (overflow != 0) throw OverflowError(std::string(rule.what) + " takes integers that fit 63 bits");
    return IntTree(static_cast<std::int64_t>(value));
}

IntTree convert(nb::handle object, const Rule& rule, int depth) {
    PyObject* o = object.ptr();
    if (depth > IntTree::kMaxDepth)
        throw ValueError(std::string(rule.what) + " nests deeper than " + std::to_string(IntTree::kMaxDepth) +
                         " lists");
    if ((PyBool_Check(o) && !rule.key) || is_text(o)) refuse(rule, object);
    if (PyIndex_Check(o)) {
        if (PyObject* exact = PyNumber_Index(o)) return leaf(nb::steal(exact), rule);
        // An array has __index__ and refuses it; then its items count.
        nb::python_error raised;
        if (!raised.matches(PyExc_TypeError) || PyType_GetSlot(Py_TYPE(o), Py_tp_iter) == nullptr)
            throw raised;
    }
    PyObject* iterator = PyObject_GetIter(o);
    if (iterator == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();
        refuse(rule, object);
    }
    const nb::object keep = nb::steal(iterator);
    std::vector<IntTree> items;
    while (PyObject* item = PyIter_Next(iterator)) items.push_back(convert(nb::steal(item), rule, depth + 1));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return IntTree(std::move(items));
}

}  // namespace

IntTree tree_of(nb::handle object, const char* what) { return convert(object, {what, false}, 0); }

IntTree key_of(nb::handle object) { return convert(object, {"a layout key", true}, 0); }

std::int64_t quick_slot(const Layout& layout, PyObject* key) noexcept {
    Py_ssize_t integer = 0;
    if (small_int(key, integer)) return integer >= 0 && integer < layout.size() ? layout.index(integer) : -1;
#if defined(Py_LIMITED_API)
    return -1;
#else
    if (!PyTuple_CheckExact(key) && !PyList_CheckExact(key)) return -1;
    const auto extents = layout.shape().leaves(), steps = layout.stride().leaves();
    const std::size_t rank = extents.size();
    const bool is_flat = layout.shape().rank() == rank && layout.shape().modes().form().size() == rank + 1;
    if (!is_flat || static_cast<std::size_t>(PySequence_Fast_GET_SIZE(key)) != rank) return -1;
    std::int64_t slot = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        if (!small_int(PySequence_Fast_ITEMS(key)[i], integer)) return -1;
        if (integer < 0 || integer >= extents[i]) return -1;
        slot += integer * steps[i];
    }
    return slot;
#endif
}

std::int64_t slot_of(const Layout& layout, nb::handle key) {
    if (const std::int64_t slot = quick_slot(layout, key.ptr()); slot >= 0) return slot;
    const Layout kept = layout;  // user code runs in the key
    return kept.index(key_of(key));
}

nb::object object_of(const IntTree& tree) {
    if (tree.is_leaf()) return nb::int_(tree.value());
    nb::list items;
    for (const IntTree& item : tree.items()) items.append(object_of(item));
    return nb::object(items);
}

}  // namespace carrier::python
