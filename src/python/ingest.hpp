// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include "carrier/intake.hpp"

/// Values in bulk, from Python into fresh storage.
///
/// Whatever the source is, the result is what a loop over its elements would store one by one, and so is the
/// error (docs/contract.md, Values); the library's own errors name the position. What differs is speed: lists
/// and tuples are read in place, a range makes no objects, one-dimensional typed buffers are converted in
/// chunks without the interpreter's lock (python/ingest_buffer.hpp), and everything else is iterated.
namespace carrier::python {

namespace nb = nanobind;

/// Puts every value of `values` into `intake`. Lets signals in. TypeError (not iterable, a value),
/// OverflowError, what the iterator raises, and the intake's own errors.
void ingest(nb::handle values, Intake& intake);

}  // namespace carrier::python
