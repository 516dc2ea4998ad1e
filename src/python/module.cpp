// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/module.hpp"

#include "carrier/file_block.hpp"
#include "carrier/host_block.hpp"
#include "python/errors.hpp"

namespace {

/// For tests: blocks that are alive, whoever holds them. The first call begins the count of host blocks.
nanobind::dict live() {
    nanobind::dict counts;
    counts["host_blocks"] = carrier::HostBlock::live();
    counts["file_blocks"] = carrier::FileBlock::live();
    return counts;
}

}  // namespace

NB_MODULE(_core, m) {
    using namespace carrier::python;
#if defined(CARRIER_LEAK_REPORT)
    nanobind::set_leak_warnings(true);
#else
    // A daemon thread that holds a carrier at exit is no leak, and exit makes no noise.
    nanobind::set_leak_warnings(false);
#endif
    connect_host();
    register_errors();
    bind_dtype(m);
    bind_layout(m);
    bind_carrier(m);
    bind_tensor(m);
    bind_ownership(m);
    bind_cpu(m);
    bind_generic(m);
    bind_file_backed(m);
    bind_metal(m);
    bind_evictable(m);
    bind_storage_functions(m);
    register_exit(m);
    m.def("_live", &live, nanobind::sig("def _live() -> dict[str, int]"));
}
