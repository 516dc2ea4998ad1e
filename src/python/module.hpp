// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

/// What the sources of `carrier_storage._core` offer to the module's own function, one for each bound class
/// or group. Called in the order in which they stand here: a class follows its base and the classes in its
/// signatures.
namespace carrier::python {

namespace nb = nanobind;

void bind_memory(nb::module_& m);
void bind_dtype(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_carrier(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_ownership(nb::module_& m);
void bind_cpu(nb::module_& m);
void bind_generic(nb::module_& m);
void bind_file_backed(nb::module_& m);
void bind_metal(nb::module_& m);
void bind_evictable(nb::module_& m);
void bind_storage_functions(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_edit(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_foreign(nb::module_& m);
void bind_bulk(nb::module_& m);
void bind_tokens(nb::module_& m);
void bind_pickle(nb::module_& m);

/// Gives the library its view of the interpreter: lock, signals, references, temporary folder
/// (carrier/host.hpp).
void connect_host();
/// Arranges that a process which ends through Python's shutdown removes its session directory.
void register_exit(nb::module_& m);

}  // namespace carrier::python
