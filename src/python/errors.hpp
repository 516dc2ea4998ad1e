// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

/// The one place where C++ errors become Python's.
namespace carrier::python {

/// Sets the Python error for the C++ exception in flight. For slots, which nanobind does not wrap: call it
/// inside a `catch (...)`, then return the slot's error value.
void raise_current() noexcept;

/// Registers the same mapping for functions that nanobind wraps.
void register_errors();

}  // namespace carrier::python
