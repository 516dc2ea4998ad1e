// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/transpose.hpp"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// The intrinsics of GCC 12 start from a register that they leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace carrier::kernels {

#if defined(__x86_64__)

namespace {

__attribute__((target("avx512f"))) void square(const std::byte* from, std::byte* to, std::int64_t from_pitch,
                                               std::int64_t to_pitch) noexcept {
    __m512i a[16];
    __m512i b[16];
    for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(from + i * from_pitch);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    // Each a[4 * g + k] holds, in its four lanes, columns k, 4 + k, 8 + k and 12 + k of row group g.
    for (int k = 0; k < 4; ++k) {
        const __m512i even_low = _mm512_shuffle_i32x4(a[k], a[4 + k], 0x88);
        const __m512i even_high = _mm512_shuffle_i32x4(a[8 + k], a[12 + k], 0x88);
        const __m512i odd_low = _mm512_shuffle_i32x4(a[k], a[4 + k], 0xdd);
        const __m512i odd_high = _mm512_shuffle_i32x4(a[8 + k], a[12 + k], 0xdd);
        _mm512_storeu_si512(to + k * to_pitch, _mm512_shuffle_i32x4(even_low, even_high, 0x88));
        _mm512_storeu_si512(to + (4 + k) * to_pitch, _mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
        _mm512_storeu_si512(to + (8 + k) * to_pitch, _mm512_shuffle_i32x4(even_low, even_high, 0xdd));
        _mm512_storeu_si512(to + (12 + k) * to_pitch, _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd));
    }
}

}  // namespace

const Square square_avx512 = square;

#else

const Square square_avx512 = nullptr;

#endif

}  // namespace carrier::kernels
