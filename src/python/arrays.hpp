// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include "python/hand_out.hpp"

/// NumPy arrays over carriers. NumPy is imported by the calls that need it, never with the module.
namespace carrier::python {

namespace nb = nanobind;

/// NumPy's array type. ImportError, which says what to do, when there is no NumPy.
nb::object array_type();

/// An array of that type over the memory; it keeps the block alive.
nb::object array_over(nb::handle type, const HandOut& memory, bool writable);

}  // namespace carrier::python
