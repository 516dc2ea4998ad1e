// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include "carrier/carrier.hpp"

/// Element access and iteration, as raw slots: the paths that programs take once for every element.
namespace carrier::python {

/// `self[key]` and `get_value`; new reference, or null with an error set. `self` is of a carrier class.
PyObject* get_item(PyObject* self, PyObject* key);
/// `self[key] = value`, `set_value` and, with a null value, `del self[key]`; -1 with an error set.
int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;
/// `len(self)`.
Py_ssize_t length(PyObject* self) noexcept;
/// `iter(self)`: reads live, so it fails when the carrier is released or evicted on the way.
PyObject* iterate(PyObject* self) noexcept;
/// `reversed(self)`.
PyObject* iterate_reversed(PyObject* self) noexcept;

/// The carrier behind `self`, whose class is known to be a carrier's. TypeError when its `__init__` did not
/// run.
Carrier& ready(PyObject* self);

/// Makes the iterator's class.
void bind_iterator();

}  // namespace carrier::python
