// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "carrier/errors.hpp"
#include "python/ingest_buffer.hpp"

namespace carrier::python {

namespace {

constexpr std::size_t kBlock = 4096;  // elements whose range is checked together

struct Half {
    std::uint16_t bits;
};
struct Flag {
    std::uint8_t byte;
};

template <class From>
From load(const std::byte* from) noexcept {
    From value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

float widen(Half half) noexcept {
    constexpr std::uint32_t kInfinite = 0x7C00;
    const std::uint32_t magnitude = half.bits & 0x7FFFU;
    const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16;
    // The exponents' biases differ by 112; the product also normalizes what is subnormal as a half.
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112F);
    const std::uint32_t special = magnitude >= kInfinite ? 0x7F800000U : 0U;
    return std::bit_cast<float>(scaled | special | sign);
}

template <class To, class From>
To converted(From value) noexcept {
    if constexpr (std::is_same_v<From, Half>)
        return static_cast<To>(widen(value));
    else if constexpr (std::is_same_v<From, Flag>)
        return static_cast<To>(value.byte != 0);
    else
        return static_cast<To>(value);
}

template <class From, class To, class Step>
void convert_steps(const std::byte* from, Step step, std::size_t count, std::byte* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const To value = converted<To>(load<From>(from + static_cast<std::ptrdiff_t>(i) * step));
        std::memcpy(to + i * sizeof(To), &value, sizeof(To));
    }
}

/// A plain loop in two forms: the compiler vectorizes the one whose step it knows.
template <class From, class To>
void convert_run(const std::byte* from, std::ptrdiff_t stride, std::size_t count, std::byte* to) noexcept {
    constexpr std::integral_constant<std::ptrdiff_t, sizeof(From)> dense{};
    if (stride == dense)
        convert_steps<From, To>(from, dense, count, to);
    else
        convert_steps<From, To>(from, stride, count, to);
}

/// Bits whose union over many elements tells, by `leaves_int32`, whether one of them leaves Int32: with the
/// range shifted to begin at 0, bits above its 32 (or, unsigned, its 31). An addition and a union for each
/// element is cheap enough to be vectorized with the conversion.
template <class From>
std::uint64_t range_bits(From value) noexcept {
    if constexpr (std::is_unsigned_v<From>)
        return static_cast<std::uint64_t>(value);
    else
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) + 0x80000000U;
}

template <class From>
bool leaves_int32(std::uint64_t bits) noexcept {
    return bits >> (std::is_unsigned_v<From> ? 31 : 32) != 0;
}

/// Converts without looking; returns the union of the range bits.
template <class From, class Step>
std::uint64_t narrow_run(const std::byte* from, Step step, std::size_t count, std::byte* to) noexcept {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const From element = load<From>(from + static_cast<std::ptrdiff_t>(i) * step);
        const auto value = static_cast<std::int32_t>(element);
        bits |= range_bits(element);
        std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return bits;
}

template <class From>
void convert_checked(const std::byte* from, std::ptrdiff_t stride, std::size_t count, std::byte* to,
                     std::size_t position) {
    constexpr std::integral_constant<std::ptrdiff_t, sizeof(From)> dense{};
    for (std::size_t start = 0; start < count; start += kBlock) {
        const std::size_t n = std::min(count - start, kBlock);
        const std::byte* block = from + static_cast<std::ptrdiff_t>(start) * stride;
        std::byte* slots = to + start * sizeof(std::int32_t);
        const std::uint64_t bits = stride == dense ? narrow_run<From>(block, dense, n, slots)
                                                   : narrow_run<From>(block, stride, n, slots);
        if (!leaves_int32<From>(bits)) continue;
        for (std::size_t i = 0; i < n; ++i) {
            const From element = load<From>(block + static_cast<std::ptrdiff_t>(i) * stride);
            if (leaves_int32<From>(range_bits(element)))
                throw OverflowError("value " + std::to_string(position + start + i) +
                                    ": an Int32 slot takes integers in [-2147483648, 2147483647], not " +
                                    std::to_string(element));
        }
        throw OverflowError("the values changed while they were read; one of them left Int32");
    }
}

[[noreturn]] void refuse(const char* what, std::size_t position) {
    throw TypeError("value " + std::to_string(position) + ": " + what);
}

template <class From>
void convert_to(Encoding encoding, const std::byte* from, std::ptrdiff_t stride, std::size_t count,
                std::byte* to, std::size_t position) {
    constexpr bool kSameSize = std::is_same_v<From, float> || std::is_same_v<From, std::int32_t>;
    const bool same = (std::is_same_v<From, float> && encoding == Encoding::float32) ||
                      (std::is_same_v<From, std::int32_t> && encoding == Encoding::int32);
    if (kSameSize && same && stride == static_cast<std::ptrdiff_t>(sizeof(From))) {
        std::memcpy(to, from, count * sizeof(From));
    } else if (encoding == Encoding::float32) {
        convert_run<From, float>(from, stride, count, to);
    } else if (encoding == Encoding::bool8) {
        if constexpr (std::is_same_v<From, Flag>)
            convert_run<From, bool>(from, stride, count, to);
        else
            refuse(std::is_integral_v<From> ? "a Bool slot takes True or False, not int"
                                            : "a Bool slot takes True or False, not float",
                   position);
    } else if constexpr (!std::is_integral_v<From>) {
        refuse(std::is_same_v<From, Flag> ? "an Int32 slot takes an int, not bool"
                                          : "an Int32 slot takes an int, not float",
               position);
    } else if constexpr (sizeof(From) < sizeof(std::int32_t) || std::is_same_v<From, std::int32_t>) {
        convert_run<From, std::int32_t>(from, stride, count, to);
    } else {
        convert_checked<From>(from, stride, count, to, position);
    }
}

Elements integer_of(bool is_signed, Py_ssize_t bytes) noexcept {
    switch (bytes) {
        case 1:
            return is_signed ? Elements::int8 : Elements::uint8;
        case 2:
            return is_signed ? Elements::int16 : Elements::uint16;
        case 4:
            return is_signed ? Elements::int32 : Elements::uint32;
        case 8:
            return is_signed ? Elements::int64 : Elements::uint64;
        default:
            return Elements::other;
    }
}

}  // namespace

Elements elements_of(const char* format, Py_ssize_t item_bytes) noexcept {
    if (format == nullptr) return item_bytes == 1 ? Elements::uint8 : Elements::other;
    constexpr char kNative = std::endian::native == std::endian::little ? '<' : '>';
    if (*format == '@' || *format == '=' || *format == kNative) ++format;
    if (format[0] == '\0' || format[1] != '\0') return Elements::other;
    const auto sized = [&](Elements elements, Py_ssize_t bytes) {
        return item_bytes == bytes ? elements : Elements::other;
    };
    switch (*format) {
        case '?':
            return sized(Elements::boolean, 1);
        case 'e':
            return sized(Elements::float16, 2);
        case 'f':
            return sized(Elements::float32, 4);
        case 'd':
            return sized(Elements::float64, 8);
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
        case 'n':
            return integer_of(true, item_bytes);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
        case 'N':
            return integer_of(false, item_bytes);
        default:
            return Elements::other;
    }
}

void convert_elements(Elements elements, const std::byte* from, std::ptrdiff_t stride, std::size_t count,
                      Encoding encoding, std::byte* to, std::size_t position) {
    if (count == 0) return;
    const auto as = [&](auto type) {
        convert_to<decltype(type)>(encoding, from, stride, count, to, position);
    };
    switch (elements) {
        case Elements::boolean:
            return as(Flag{});
        case Elements::int8:
            return as(std::int8_t{});
        case Elements::int16:
            return as(std::int16_t{});
        case Elements::int32:
            return as(std::int32_t{});
        case Elements::int64:
            return as(std::int64_t{});
        case Elements::uint8:
            return as(std::uint8_t{});
        case Elements::uint16:
            return as(std::uint16_t{});
        case Elements::uint32:
            return as(std::uint32_t{});
        case Elements::uint64:
            return as(std::uint64_t{});
        case Elements::float16:
            return as(Half{});
        case Elements::float32:
            return as(float{});
        case Elements::float64:
            return as(double{});
        case Elements::other:
            break;
    }
    throw TypeError("the buffer's elements are no bools, integers or floats in native order");
}

}  // namespace carrier::python
