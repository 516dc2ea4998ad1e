// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstddef>
#include <string>

#include "carrier/block.hpp"

/// The seam to the Metal runtime: which source stands behind it is the build's choice, never an #ifdef.
namespace carrier::metal {

/// Whether storage can be had; asking opens the runtime. The reason why not goes to `why` when given.
bool available(std::string* why);

/// Memory shared with the GPU, zeroed unless `empty`. StateError that says what is missing and what to use
/// instead; MemoryError when the device refuses the size.
Ref<Block> allocate(std::size_t bytes, bool empty);

}  // namespace carrier::metal
