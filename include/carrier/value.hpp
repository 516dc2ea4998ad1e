// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "carrier/dtype.hpp"
#include "carrier/ref.hpp"

/// Values and the one rule by which they enter a carrier (docs/contract.md, Values).
namespace carrier {

/// How one slot is laid out in memory. Only three dtypes have slots of bytes; a custom carrier of any other
/// dtype passes its values through as host objects (`opaque`).
enum class Encoding : std::uint8_t { float32, int32, bool8, opaque };

/// The encoding that stores `dtype`.
inline Encoding encoding_of(const DType& dtype) noexcept {
    if (&dtype == &DType::Float32()) return Encoding::float32;
    if (&dtype == &DType::Int32()) return Encoding::int32;
    if (&dtype == &DType::Bool()) return Encoding::bool8;
    return Encoding::opaque;
}

/// Bytes of one slot: 4, 4 and 1.
constexpr std::size_t slot_bytes(Encoding encoding) noexcept { return encoding == Encoding::bool8 ? 1 : 4; }

/// Bytes of so many slots. More than memory can address become the greatest number, which every allocation
/// refuses and no memory has.
constexpr std::size_t bytes_of(std::int64_t slots, Encoding encoding) noexcept {
    const std::size_t width = slot_bytes(encoding);
    const auto count = static_cast<std::size_t>(slots);
    return count <= PTRDIFF_MAX / width ? count * width : SIZE_MAX;
}

/// A normalized value of one slot, without its encoding.
union Scalar {
    float float32;
    std::int32_t int32;
    bool bool8;
};

/// Reads a slot; the address may be unaligned, and any non-zero byte is a true Bool.
inline Scalar load_slot(Encoding encoding, const std::byte* slot) noexcept {
    Scalar s{};
    if (encoding == Encoding::bool8)
        s.bool8 = *slot != std::byte{0};
    else
        std::memcpy(&s, slot, 4);
    return s;
}

/// Makes stored Bools 1 or 0: memory that others wrote may hold any byte for True.
inline void normalize_booleans(std::span<std::byte> slots) noexcept {
    for (std::byte& slot : slots) slot = std::byte{slot != std::byte{0}};
}

/// Writes a slot; the address may be unaligned.
inline void store_slot(Encoding encoding, std::byte* slot, Scalar s) noexcept {
    if (encoding == Encoding::bool8)
        *slot = std::byte{s.bool8};
    else
        std::memcpy(slot, &s, 4);
}

/// A value on its way in or out: nothing (a hole), a boolean, an integer, a floating number, or a host
/// object.
class Value {
  public:
    enum class Kind : std::uint8_t { none, boolean, integer, floating, object };

    Value() noexcept : integer_(0) {}
    Value(bool v) noexcept : boolean_(v), kind_(Kind::boolean) {}
    template <std::signed_integral T>
    Value(T v) noexcept : integer_(v), kind_(Kind::integer) {}
    template <std::floating_point T>
    Value(T v) noexcept : floating_(static_cast<double>(v)), kind_(Kind::floating) {}
    explicit Value(Ref<RefCounted> object) noexcept
        : integer_(0), object_(std::move(object)), kind_(Kind::object) {}

    Kind kind() const noexcept { return kind_; }
    bool is_none() const noexcept { return kind_ == Kind::none; }
    bool boolean() const noexcept { return boolean_; }
    std::int64_t integer() const noexcept { return integer_; }
    double floating() const noexcept { return floating_; }
    const Ref<RefCounted>& object() const noexcept { return object_; }

    /// Same kind and same value; not a number equals itself here.
    friend CARRIER_API bool operator==(const Value& a, const Value& b) noexcept;

  private:
    union {
        bool boolean_;
        std::int64_t integer_;
        double floating_;
    };
    Ref<RefCounted> object_;
    Kind kind_ = Kind::none;
};

/// Normalizes `value` for a slot. TypeError when the dtype does not take the value's kind, OverflowError when
/// an integer leaves Int32. Floating numbers round to the nearest binary32, ties to even, and beyond the
/// range to infinity; integers into Float32 round once.
CARRIER_API Scalar normalize(Encoding encoding, const Value& value);

/// The stored value as a Value: Float32 as a double that equals it, Int32 as an integer, Bool as a boolean.
inline Value to_value(Encoding encoding, Scalar s) noexcept {
    switch (encoding) {
        case Encoding::float32:
            return Value(s.float32);
        case Encoding::int32:
            return Value(s.int32);
        default:
            return Value(s.bool8);
    }
}

}  // namespace carrier
