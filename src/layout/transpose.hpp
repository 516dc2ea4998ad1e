// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/tuning.hpp"

namespace carrier::kernels {

/// Two-dimensional memory read by rows and written by columns: element (row, column) goes from
/// `from + row * from_pitch + column * width` to `to + column * to_pitch + row * width`. Pitches are in
/// bytes; nothing needs to be aligned.
struct Plane {
    const std::byte* from;
    std::byte* to;
    std::int64_t from_pitch;
    std::int64_t to_pitch;
    std::int64_t rows;
    std::int64_t columns;
};

/// Elements of 4 bytes. `stream` stores whole cache lines past the caches, for planes larger than they are.
void transpose4(const Plane& plane, Tuning::Vectors vectors, bool stream) noexcept;
/// Elements of 1 byte.
void transpose1(const Plane& plane) noexcept;

/// One square of 16 by 16 elements of 4 bytes.
using Square = void (*)(const std::byte* from, std::byte* to, std::int64_t from_pitch, std::int64_t to_pitch);
/// By 512-bit registers; nullptr where this build has none.
extern const Square square_avx512;

}  // namespace carrier::kernels
