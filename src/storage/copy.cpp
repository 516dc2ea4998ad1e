// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "os/process.hpp"
#include "os/stream.hpp"
#include "storage/crew.hpp"

namespace carrier::storage {

namespace {

constexpr std::size_t kStreamed = std::size_t{32} << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;

}  // namespace

std::size_t copying_threads() noexcept { return std::min(os::processors(), 2u); }

void copy_memory(std::byte* to, const std::byte* from, std::size_t bytes, Pulse& pulse) {
    if (bytes == 0) return;
    const auto a = reinterpret_cast<std::uintptr_t>(to);
    const auto b = reinterpret_cast<std::uintptr_t>(from);
    const bool apart = a >= b + bytes || b >= a + bytes;
    if (bytes < kStreamed || !apart) {
        std::memmove(to, from, bytes);
        return;
    }
    run_jobs((bytes + kChunk - 1) / kChunk, copying_threads(), pulse, [&](std::size_t i) {
        const std::size_t at = i * kChunk;
        os::stream_long(from + at, to + at, std::min(kChunk, bytes - at));
    });
}

}  // namespace carrier::storage
