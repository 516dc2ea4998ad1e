// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>

#include "carrier/host.hpp"

namespace carrier::storage {

/// How many threads moving memory within memory is worth.
std::size_t copying_threads() noexcept;

/// Copies host memory; the ranges may overlap. Much memory is written past the cache, by two threads.
void copy_memory(std::byte* to, const std::byte* from, std::size_t bytes, Pulse& pulse);

}  // namespace carrier::storage
