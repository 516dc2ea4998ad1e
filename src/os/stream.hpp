// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Stores that bypass the caches, for more bytes than those hold. Plain copies where the machine has none.
namespace carrier::os {

constexpr std::size_t kCacheLine = 64;

inline void stream_line(const std::byte* from, std::byte* to) noexcept {
#if defined(__SSE2__)
    const auto* const in = reinterpret_cast<const __m128i*>(from);
    auto* const out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
#else
    std::memcpy(to, from, kCacheLine);
#endif
}

/// Orders streamed stores before what follows; once, at the end.
inline void finish_streaming() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/// A run, its whole lines streamed.
inline void stream(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
#if defined(__SSE2__)
    std::size_t at = std::min(-reinterpret_cast<std::uintptr_t>(to) & (kCacheLine - 1), bytes);
    std::memcpy(to, from, at);
    for (; at + kCacheLine <= bytes; at += kCacheLine) stream_line(from + at, to + at);
    std::memcpy(to + at, from + at, bytes - at);
#else
    std::memcpy(to, from, bytes);
#endif
}

/// On Intel's processors several pages in turn keep more of the memory busy than one after another. AMD's
/// combine the stores of few lines at a time, and take five times as long (measured on Zen 3).
inline bool several_pages_are_faster() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_is("intel") != 0;
#else
    return false;
#endif
}

/// A very long run. `several_pages`: a line of each of four pages in turn.
inline void stream_long(const std::byte* from, std::byte* to, std::size_t bytes,
                        bool several_pages = several_pages_are_faster()) noexcept {
    constexpr std::size_t page = 4096;
    constexpr std::size_t pages = 4 * page;
    std::size_t at = std::min(-reinterpret_cast<std::uintptr_t>(to) & (kCacheLine - 1), bytes);
    std::memcpy(to, from, at);
    if (several_pages)
        for (; at + pages <= bytes; at += pages)
            for (std::size_t line = at; line < at + page; line += kCacheLine)
                for (std::size_t i = line; i < line + pages; i += page) {
                    // What is four lines on is needed when this page's turn comes again.
                    __builtin_prefetch(from + i + 4 * kCacheLine);
                    stream_line(from + i, to + i);
                }
    stream(from + at, to + at, bytes - at);
    finish_streaming();
}

}  // namespace carrier::os
