// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/transpose.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "os/stream.hpp"

namespace carrier::kernels {

namespace {

constexpr std::int64_t kSide = 16;

using Four = std::uint32_t __attribute__((vector_size(16)));
using Sixteen = std::uint8_t __attribute__((vector_size(16)));

template <class Vector>
Vector load(const std::byte* from) noexcept {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Vector>
void store(Vector v, std::byte* to) noexcept {
    std::memcpy(to, &v, sizeof v);
}

void square4(const std::byte* from, std::byte* to, std::int64_t from_pitch, std::int64_t to_pitch) noexcept {
    const auto a = load<Four>(from);
    const auto b = load<Four>(from + from_pitch);
    const auto c = load<Four>(from + 2 * from_pitch);
    const auto d = load<Four>(from + 3 * from_pitch);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), to);
    store(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), to + to_pitch);
    store(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), to + 2 * to_pitch);
    store(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), to + 3 * to_pitch);
}

void square16(const std::byte* from, std::byte* to, std::int64_t from_pitch, std::int64_t to_pitch) noexcept {
    for (std::int64_t row = 0; row < kSide; row += 4)
        for (std::int64_t column = 0; column < kSide; column += 4)
            square4(from + row * from_pitch + column * 4, to + column * to_pitch + row * 4, from_pitch,
                    to_pitch);
}

/// Four rounds of interleaving row k with row k + 8 leave every row as a column.
void square16_bytes(const std::byte* from, std::byte* to, std::int64_t from_pitch,
                    std::int64_t to_pitch) noexcept {
    Sixteen rows[16];
    for (int i = 0; i < 16; ++i) rows[i] = load<Sixteen>(from + i * from_pitch);
    for (int round = 0; round < 4; ++round) {
        Sixteen next[16];
        for (int i = 0; i < 8; ++i) {
            next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                                  21, 6, 22, 7, 23);
            next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                      28, 13, 29, 14, 30, 15, 31);
        }
        std::copy_n(next, 16, rows);
    }
    for (int i = 0; i < 16; ++i) store(rows[i], to + i * to_pitch);
}

template <std::size_t Width>
void one_by_one(const Plane& p) noexcept {
    constexpr auto width = static_cast<std::int64_t>(Width);
    for (std::int64_t column = 0; column < p.columns; ++column)
        for (std::int64_t row = 0; row < p.rows; ++row)
            std::memcpy(p.to + column * p.to_pitch + row * width,
                        p.from + row * p.from_pitch + column * width, Width);
}

template <std::size_t Width>
Plane part(const Plane& p, std::int64_t row, std::int64_t column, std::int64_t rows,
           std::int64_t columns) noexcept {
    constexpr auto width = static_cast<std::int64_t>(Width);
    return {p.from + row * p.from_pitch + column * width,
            p.to + column * p.to_pitch + row * width,
            p.from_pitch,
            p.to_pitch,
            rows,
            columns};
}

/// What is too narrow for the large squares.
void rest4(const Plane& p) noexcept {
    const std::int64_t rows = p.rows & ~std::int64_t{3};
    const std::int64_t columns = p.columns & ~std::int64_t{3};
    for (std::int64_t row = 0; row < rows; row += 4)
        for (std::int64_t column = 0; column < columns; column += 4)
            square4(p.from + row * p.from_pitch + column * 4, p.to + column * p.to_pitch + row * 4,
                    p.from_pitch, p.to_pitch);
    if (columns < p.columns) one_by_one<4>(part<4>(p, 0, columns, rows, p.columns - columns));
    if (rows < p.rows) one_by_one<4>(part<4>(p, rows, 0, p.rows - rows, p.columns));
}

/// A strip of at most 16 columns, square after square down the rows.
void strip4(const Plane& p, Square square, bool prefetch) noexcept {
    std::int64_t row = 0;
    if (p.columns == kSide)
        for (; row + kSide <= p.rows; row += kSide) {
            const std::byte* const from = p.from + row * p.from_pitch;
            if (prefetch)
                for (std::int64_t i = 0; i < kSide; ++i)
                    __builtin_prefetch(from + i * p.from_pitch + 2 * kLine);
            square(from, p.to + row * 4, p.from_pitch, p.to_pitch);
        }
    if (row < p.rows) rest4(part<4>(p, row, 0, p.rows - row, p.columns));
}

/// A strip goes through a buffer in the first cache, so that lines of the destination are written whole.
void stream_strip4(const Plane& p, Square square, bool prefetch) noexcept {
    constexpr std::int64_t kPitch = 256 * 4 + kLine;
    alignas(64) std::byte buffer[kSide * kPitch];
    Plane inside = p;
    inside.to = buffer;
    inside.to_pitch = kPitch;
    strip4(inside, square, prefetch);
    for (std::int64_t column = 0; column < p.columns; ++column)
        os::stream(buffer + column * kPitch, p.to + column * p.to_pitch,
                   static_cast<std::size_t>(p.rows) * 4);
}

}  // namespace

void transpose4(const Plane& p, Tuning::Vectors vectors, bool stream) noexcept {
    if (p.rows < kSide || p.columns < kSide) return rest4(p);
    const Square square =
        vectors == Tuning::Vectors::avx512 && square_avx512 != nullptr ? square_avx512 : square16;
    // Rows of a pitch in whole lines start alike: short panels, cut where lines of the destination begin,
    // hold what an unlucky pitch (a power of two) maps to few sets of the cache. Other rows share lines with
    // the next strip.
    const bool whole_to = p.to_pitch % kLine == 0;
    const bool prefetch = p.from_pitch % kLine != 0;
    const std::int64_t panel = !stream ? 512 : whole_to ? 64 : 256;
    std::int64_t height = panel;
    if (whole_to && stream)
        height -= static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p.to) % kLine / 4);
    for (std::int64_t row = 0; row < p.rows; row += std::exchange(height, panel)) {
        const std::int64_t rows = std::min(height, p.rows - row);
        for (std::int64_t column = 0; column < p.columns; column += kSide) {
            const Plane strip = part<4>(p, row, column, rows, std::min(kSide, p.columns - column));
            if (stream)
                stream_strip4(strip, square, prefetch);
            else
                strip4(strip, square, false);
        }
    }
}

void transpose1(const Plane& p) noexcept {
    const std::int64_t rows = p.rows & ~(kSide - 1);
    const std::int64_t columns = p.columns & ~(kSide - 1);
    constexpr std::int64_t panel = 512;
    for (std::int64_t top = 0; top < rows; top += panel)
        for (std::int64_t column = 0; column < columns; column += kSide)
            for (std::int64_t row = top; row < std::min(rows, top + panel); row += kSide)
                square16_bytes(p.from + row * p.from_pitch + column, p.to + column * p.to_pitch + row,
                               p.from_pitch, p.to_pitch);
    if (columns < p.columns) one_by_one<1>(part<1>(p, 0, columns, rows, p.columns - columns));
    if (rows < p.rows) one_by_one<1>(part<1>(p, rows, 0, p.rows - rows, p.columns));
}

}  // namespace carrier::kernels
