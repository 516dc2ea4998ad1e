// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "layout/plan.hpp"
#include "layout/transpose.hpp"

/// Copies along one or two axes, for each pair of element types. Addresses need no alignment, so every
/// element passes through memcpy.
namespace carrier::kernels {

struct Same4 {
    using From = std::uint32_t;
    using To = std::uint32_t;
    static To convert(From v) noexcept { return v; }
};
struct Same1 {
    using From = std::uint8_t;
    using To = std::uint8_t;
    static To convert(From v) noexcept { return v; }
};
struct IntToFloat {
    using From = std::int32_t;
    using To = float;
    static To convert(From v) noexcept { return static_cast<float>(v); }
};
struct BoolToFloat {
    using From = std::uint8_t;
    using To = float;
    static To convert(From v) noexcept { return v != 0 ? 1.0F : 0.0F; }
};
struct BoolToBool {
    using From = std::uint8_t;
    using To = std::uint8_t;
    static To convert(From v) noexcept { return v != 0 ? 1 : 0; }
};

template <class Op>
constexpr bool is_plain = std::is_same_v<Op, Same4> || std::is_same_v<Op, Same1>;

template <class Op>
inline void copy_one(const std::byte* from, std::byte* to) noexcept {
    typename Op::From v;
    std::memcpy(&v, from, sizeof v);
    const typename Op::To converted = Op::convert(v);
    std::memcpy(to, &converted, sizeof converted);
}

/// A run of `bytes`, at least one and at most 8 times `Block`, in blocks that overlap in the middle.
template <class Block, int Pairs>
inline void copy_pairs(const std::byte* from, std::byte* to, std::int64_t bytes) noexcept {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Block));
    Block first[Pairs];
    Block last[Pairs];
    for (int i = 0; i < Pairs; ++i) {
        std::memcpy(&first[i], from + i * size, sizeof(Block));
        std::memcpy(&last[i], from + bytes - (i + 1) * size, sizeof(Block));
    }
    for (int i = 0; i < Pairs; ++i) {
        std::memcpy(to + i * size, &first[i], sizeof(Block));
        std::memcpy(to + bytes - (i + 1) * size, &last[i], sizeof(Block));
    }
}

using Block16 = std::uint8_t __attribute__((vector_size(16)));
constexpr std::int64_t kShortRun = 128;

/// Calls `use(copy)` with what copies a run of `bytes`; short runs are not worth a call each.
template <class Use>
inline void with_run(std::int64_t bytes, Use use) noexcept {
    const auto pairs = [&]<class Block, int Pairs>(Block, std::integral_constant<int, Pairs>) {
        use([bytes](const std::byte* from, std::byte* to) { copy_pairs<Block, Pairs>(from, to, bytes); });
    };
    constexpr std::integral_constant<int, 1> one;
    if (bytes > kShortRun)
        use([bytes](const std::byte* from, std::byte* to) {
            std::memcpy(to, from, static_cast<std::size_t>(bytes));
        });
    else if (bytes > 64)
        pairs(Block16{}, std::integral_constant<int, 4>{});
    else if (bytes > 32)
        pairs(Block16{}, std::integral_constant<int, 2>{});
    else if (bytes >= 16)
        pairs(Block16{}, one);
    else if (bytes >= 8)
        pairs(std::uint64_t{}, one);
    else if (bytes >= 4)
        pairs(std::uint32_t{}, one);
    else if (bytes >= 2)
        pairs(std::uint16_t{}, one);
    else
        pairs(std::uint8_t{}, one);
}

/// Elements `from[i * from_step]` to `to[i * to_step]`. In long rows each line that will be written is
/// announced some way ahead, in groups of 16 elements.
template <class Op>
inline void copy_strided(const std::byte* from, std::byte* to, std::int64_t extent, std::int64_t from_step,
                         std::int64_t to_step) noexcept {
    constexpr std::int64_t kGroup = 16;
    const std::int64_t from_bytes = from_step * static_cast<std::int64_t>(sizeof(typename Op::From));
    const std::int64_t to_bytes = to_step * static_cast<std::int64_t>(sizeof(typename Op::To));
    std::int64_t i = 0;
    if (extent >= 8 * kGroup) {
        const std::int64_t group_bytes = kGroup * to_bytes;
        const std::int64_t line_step = std::max(kLine, to_bytes);
        const std::int64_t groups_ahead = group_bytes <= 256 ? 16 : group_bytes <= 1024 ? 4 : 2;
        const std::int64_t ahead = groups_ahead * group_bytes;
        for (; i + (groups_ahead + 1) * kGroup <= extent; i += kGroup) {
            for (std::int64_t line = 0; line < group_bytes; line += line_step)
                __builtin_prefetch(to + ahead + line, 1);
            for (std::int64_t k = 0; k < kGroup; ++k) copy_one<Op>(from + k * from_bytes, to + k * to_bytes);
            from += kGroup * from_bytes;
            to += group_bytes;
        }
    }
    for (; i < extent; ++i, from += from_bytes, to += to_bytes) copy_one<Op>(from, to);
}

/// One row along `axis`, by the best way for its steps.
template <class Op>
inline void copy_row(const Axis& axis, const std::byte* from, std::byte* to) noexcept {
    constexpr std::size_t from_width = sizeof(typename Op::From);
    constexpr std::size_t to_width = sizeof(typename Op::To);
    const auto extent = static_cast<std::size_t>(axis.extent);
    if (axis.to != 1) {
        if (axis.from == 1)
            copy_strided<Op>(from, to, axis.extent, 1, axis.to);
        else
            copy_strided<Op>(from, to, axis.extent, axis.from, axis.to);
    } else if (axis.from == 1) {
        if constexpr (is_plain<Op>)
            with_run(axis.extent * static_cast<std::int64_t>(to_width), [&](auto copy) { copy(from, to); });
        else
            for (std::size_t i = 0; i < extent; ++i) copy_one<Op>(from + i * from_width, to + i * to_width);
    } else {
        const std::size_t step = static_cast<std::size_t>(axis.from) * from_width;
        for (std::size_t i = 0; i < extent; ++i) copy_one<Op>(from + i * step, to + i * to_width);
    }
}

/// Rows of contiguous elements on both sides. Lines to be written are announced some rows ahead.
inline void copy_runs(const Axis& rows, std::int64_t bytes, std::int64_t width, const std::byte* from,
                      std::byte* to) noexcept {
    constexpr std::int64_t kRowsAhead = 32;
    const std::int64_t from_step = rows.from * width;
    const std::int64_t to_step = rows.to * width;
    with_run(bytes, [&](auto copy) {
        const std::byte* f = from;
        std::byte* t = to;
        const std::int64_t announced = bytes <= kShortRun ? rows.extent - kRowsAhead : 0;
        for (std::int64_t i = 0; i < rows.extent; ++i, f += from_step, t += to_step) {
            if (i < announced) __builtin_prefetch(t + kRowsAhead * to_step, 1);
            copy(f, t);
        }
    });
}

/// Two axes that are short on different sides, in tiles small enough that the lines of both stay in the first
/// cache.
template <class Op>
inline void copy_tiles(const Axis& along_to, const Axis& along_from, const std::byte* from,
                       std::byte* to) noexcept {
    constexpr auto from_width = static_cast<std::int64_t>(sizeof(typename Op::From));
    constexpr auto to_width = static_cast<std::int64_t>(sizeof(typename Op::To));
    constexpr std::int64_t kSide = 32;
    const std::int64_t ni = std::min(along_to.extent, kSide);
    const std::int64_t nj = std::min(along_from.extent, kSide * kSide / ni);
    const auto element = [&](std::int64_t i, std::int64_t j) {
        copy_one<Op>(from + (i * along_to.from + j * along_from.from) * from_width,
                     to + (i * along_to.to + j * along_from.to) * to_width);
    };
    for (std::int64_t i0 = 0; i0 < along_to.extent; i0 += ni) {
        const std::int64_t i1 = std::min(i0 + ni, along_to.extent);
        for (std::int64_t j0 = 0; j0 < along_from.extent; j0 += nj) {
            const std::int64_t j1 = std::min(j0 + nj, along_from.extent);
            if (i1 - i0 >= j1 - j0) {
                for (std::int64_t j = j0; j < j1; ++j)
                    for (std::int64_t i = i0; i < i1; ++i) element(i, j);
            } else {
                for (std::int64_t i = i0; i < i1; ++i)
                    for (std::int64_t j = j0; j < j1; ++j) element(i, j);
            }
        }
    }
}

/// Converts blocks of rows aside, to be transposed as plain elements.
template <class Op>
inline void convert_transposed(const Plane& p, Tuning::Vectors vectors) noexcept {
    constexpr auto from_width = static_cast<std::int64_t>(sizeof(typename Op::From));
    constexpr auto to_width = static_cast<std::int64_t>(sizeof(typename Op::To));
    constexpr std::int64_t kSide = 64;
    alignas(64) std::byte aside[kSide * kSide * to_width];
    for (std::int64_t row = 0; row < p.rows; row += kSide)
        for (std::int64_t column = 0; column < p.columns; column += kSide) {
            const std::int64_t rows = std::min(kSide, p.rows - row);
            const std::int64_t columns = std::min(kSide, p.columns - column);
            for (std::int64_t i = 0; i < rows; ++i) {
                const std::byte* const from = p.from + (row + i) * p.from_pitch + column * from_width;
                std::byte* const to = aside + i * kSide * to_width;
                for (std::int64_t j = 0; j < columns; ++j)
                    copy_one<Op>(from + j * from_width, to + j * to_width);
            }
            const Plane block{
                aside,  p.to + column * p.to_pitch + row * to_width, kSide * to_width, p.to_pitch, rows,
                columns};
            if constexpr (to_width == 4)
                transpose4(block, vectors, false);
            else
                transpose1(block);
        }
}

}  // namespace carrier::kernels
