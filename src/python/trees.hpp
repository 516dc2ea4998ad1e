// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "carrier/layout.hpp"

/// Nested integers between Python and C++: shapes, strides and the keys of layouts.
namespace carrier::python {

namespace nb = nanobind;

/// A leaf or a nested iterable as a tree of modes, called `what` in errors. TypeError (not an integer, a
/// bool, text), OverflowError (beyond 63 bits), ValueError (nested too deep).
IntTree tree_of(nb::handle object, const char* what);
/// A key of `Layout.index`: as above, but a bool counts as an integer and a number beyond 63 bits is only
/// outside.
IntTree key_of(nb::handle object);
/// The slot that a key names. TypeError, ValueError (outside the layout, nested otherwise).
std::int64_t slot_of(const Layout& layout, nb::handle key);
/// The same for a small integer, or a tuple or list of them in a layout without nesting; negative for any
/// other key and for one outside the layout. Runs no user code.
std::int64_t quick_slot(const Layout& layout, PyObject* key) noexcept;
/// A tree as Python has it: an int, or a list of trees.
nb::object object_of(const IntTree& tree);

}  // namespace carrier::python
