// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "carrier/carrier.hpp"
#include "carrier/intake.hpp"

/// What the value and size factories share.
namespace carrier::python {

namespace nb = nanobind;

/// `new_like(values, *, mutable=True, dtype=None)`.
Ref<Carrier> new_like(nb::handle self, const nb::args& args, const nb::kwargs& kwargs);
/// `allocate_like(size, *, mutable=True, dtype=None, empty=False)`.
Ref<Carrier> allocate_like(nb::handle self, const nb::args& args, const nb::kwargs& kwargs);

/// TypeError unless `values` can be iterated over (which is not begun yet).
void require_iterable(nb::handle values);
/// How many values `values` is likely to give; -1 when that cannot be told without running user code.
std::int64_t expected_count(nb::handle values) noexcept;
/// Fills an open intake and closes it.
Ref<Carrier> fill(std::unique_ptr<Intake> intake, nb::handle values);

/// A flag argument: an exact bool, or `missing` when it was not given.
bool flag(nb::handle given, const char* name, bool missing);

}  // namespace carrier::python
