// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

namespace carrier::python {

/// A function as the tables of type slots (`PyType_Slot`) hold it.
template <class Function>
void* slot(Function* function) noexcept {
    return reinterpret_cast<void*>(function);
}

}  // namespace carrier::python
