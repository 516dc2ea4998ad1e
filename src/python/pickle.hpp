// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

/// Pickles and copies (docs/serialization.md): carriers in pickle.cpp, Tensors, which take theirs along, in
/// pickle_tensor.cpp.
namespace carrier::python {

namespace nb = nanobind;

void bind_tensor_pickle(nb::module_& m);

}  // namespace carrier::python
