// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Stores that bypass the caches, for more bytes than those hold. Plain copies where the machine has none.
namespace carrier::kernels {

constexpr std::int64_t kLine = 64;

inline void stream_line(const std::byte* from, std::byte* to) noexcept {
#if defined(__SSE2__)
    for (int i = 0; i < kLine; i += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
    std::memcpy(to, from, kLine);
#endif
}

/// Orders streamed stores before what follows; once, at the end.
inline void finish_streaming() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/// A run, its whole lines streamed.
inline void stream(const std::byte* from, std::byte* to, std::int64_t bytes) noexcept {
    const auto before = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) & (kLine - 1));
    std::int64_t at = before < bytes ? before : bytes;
    std::memcpy(to, from, static_cast<std::size_t>(at));
    for (; at + kLine <= bytes; at += kLine) stream_line(from + at, to + at);
    std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at));
}

/// A very long run: a line of each of four pages in turn, which keeps more of the memory busy.
inline void stream_long(const std::byte* from, std::byte* to, std::int64_t bytes) noexcept {
    constexpr std::int64_t page = 4096;
    constexpr std::int64_t pages = 4 * page;
    const auto before = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) & (kLine - 1));
    std::int64_t at = before < bytes ? before : bytes;
    std::memcpy(to, from, static_cast<std::size_t>(at));
    for (; at + pages <= bytes; at += pages)
        for (std::int64_t line = at; line < at + page; line += kLine)
            for (std::int64_t i = line; i < line + pages; i += page) {
                __builtin_prefetch(from + i + pages);
                stream_line(from + i, to + i);
            }
    stream(from + at, to + at, bytes - at);
    finish_streaming();
}

}  // namespace carrier::kernels
