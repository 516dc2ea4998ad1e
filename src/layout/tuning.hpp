// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/stream.hpp"

namespace carrier {

/// Bytes that the caches fetch and give back at once.
constexpr auto kLine = static_cast<std::int64_t>(os::kCacheLine);

/// What the machine offers and how large a copy must be for a method to pay. Results never depend on it.
struct Tuning {
    enum class Vectors : std::uint8_t { baseline, avx512 };

    Vectors vectors = Vectors::baseline;
    /// A transposition that writes at least so many bytes stores past the caches.
    std::size_t stream_from = std::size_t{4} << 20;

    /// For this machine, asked once.
    static const Tuning& best() noexcept;
};

}  // namespace carrier
