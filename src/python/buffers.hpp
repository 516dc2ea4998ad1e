// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

namespace carrier::python {

/// The buffer protocol of every carrier class: read-only, zero-copy, over an object that holds the block and
/// not the carrier (memory.hpp). BufferError: released, evicted, not in host memory, asked to be writable.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;

}  // namespace carrier::python
