// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

#include "storage/crew.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace carrier::storage {

namespace {

constexpr std::size_t kStreamed = std::size_t{32} << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;

#if defined(__SSE2__)

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;

/// One cache line, past the cache.
void stream_line(std::byte* to, const std::byte* from) noexcept {
    const auto* const in = reinterpret_cast<const __m128i*>(from);
    auto* const out = reinterpret_cast<__m128i*>(to);
    // What is four lines on is needed when this page's turn comes again.
    _mm_prefetch(reinterpret_cast<const char*>(from) + 4 * kLine, _MM_HINT_T0);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
}

/// Four pages at a time, a line of each in turn: that keeps more of the memory's banks busy than one after
/// another.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
    std::memcpy(to, from, head);
    std::size_t done = head;
    for (; bytes - done >= kPages * kPage; done += kPages * kPage)
        for (std::size_t line = 0; line < kPage; line += kLine)
            for (std::size_t page = 0; page < kPages * kPage; page += kPage)
                stream_line(to + done + page + line, from + done + page + line);
    _mm_sfence();
    std::memcpy(to + done, from + done, bytes - done);
}

#else

void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}

#endif

}  // namespace

void copy_memory(std::byte* to, const std::byte* from, std::size_t bytes, Pulse& pulse) {
    if (bytes == 0) return;
    const auto a = reinterpret_cast<std::uintptr_t>(to);
    const auto b = reinterpret_cast<std::uintptr_t>(from);
    const bool apart = a >= b + bytes || b >= a + bytes;
    if (bytes < kStreamed || !apart) {
        std::memmove(to, from, bytes);
        return;
    }
    run_jobs((bytes + kChunk - 1) / kChunk, std::min(2u, std::thread::hardware_concurrency()), pulse,
             [&](std::size_t i) {
                 const std::size_t at = i * kChunk;
                 stream(to + at, from + at, std::min(kChunk, bytes - at));
             });
}

}  // namespace carrier::storage
