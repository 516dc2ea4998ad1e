// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>

namespace carrier::storage {

/// A few freed mappings, warm, for the next block of about their size: touching fresh pages costs twice what
/// writing them does. Bounded in number and in bytes (HostBlock::kPooledBytes); needs no memory of its own.
class PagePool {
  public:
    /// A mapping of at least `bytes`, which is set to what it holds; null when there is none that fits
    /// closely.
    static std::byte* take(std::size_t& bytes) noexcept;
    /// Keeps the mapping, dropping older ones for it; false when it is too large to keep.
    static bool put(std::byte* address, std::size_t bytes) noexcept;
    /// Unmaps all; whether there was any.
    static bool clear() noexcept;
};

}  // namespace carrier::storage
