// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "carrier/cpu.hpp"
#include "carrier/evictable.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "support/faults.hpp"
#include "support/input.hpp"

namespace carrier::fuzz {

/// A kind of carrier, nested as the input says, and what a model has to know about it.
struct Kind {
    Ref<Carrier> carrier;
    bool scatters = true;
    bool custom = false;  // somewhere in it; its values go through Value, one by one
};

inline std::vector<Value> zeros(std::int64_t size, const DType& dtype) {
    return std::vector<Value>(static_cast<std::size_t>(size), storage_zero(dtype));
}

/// A carrier of `size` zeros. Depth 0 is the top; hierarchies nest three deep.
inline Kind make_kind(Input& in, std::int64_t size, const DType& dtype, bool writable, int depth = 0) {
    const bool flat = depth == 3 || size == 0 || !in.one_in(depth == 0 ? 2 : 3);
    if (!flat) {
        Kind above = make_kind(in, size, dtype, writable, depth + 1);
        const Kind below =
            make_kind(in, in.one_in(2) ? size + in.between(0, 2) : in.between(0, 1), dtype, true, depth + 1);
        above.custom = above.custom || below.custom;
        above.carrier = Ref<Carrier>(make<Evictable>(std::move(above.carrier), below.carrier));
        return above;
    }
    switch (in.between(&dtype == &DType::Bool() ? 1 : 0, 3)) {
        case 0:
            return {make<FileBacked>(dtype)->allocate_like(size, {writable, nullptr, false}), false};
        case 1:
            return {Ref<Carrier>(make<Generic>(size, dtype, writable))};
        case 2:
            return {Ref<Carrier>(make<testing::VectorCarrier>(zeros(size, dtype), dtype, writable,
                                                              Faults::standing().script())),
                    true, true};
        default:
            return {Ref<Carrier>(make<CPU>(size, dtype, writable))};
    }
}

/// Any slot of `dtype`. Not a signalling NaN, which passing through a double quiets.
inline std::uint32_t slot_bits(Input& in, const DType& dtype) {
    if (&dtype == &DType::Bool()) return in.one_in(2);
    const auto bits = in.bits<std::uint32_t>();
    const bool is_nan = (bits & 0x7F800000U) == 0x7F800000U && (bits & 0x7FFFFFU) != 0;
    return &dtype == &DType::Float32() && is_nan ? bits | 0x400000U : bits;
}

/// Slots as the model keeps them, and as carriers take them.
inline std::vector<std::byte> to_bytes(const std::vector<std::uint32_t>& slots, const DType& dtype) {
    const std::size_t width = slot_bytes(encoding_of(dtype));
    std::vector<std::byte> bytes(slots.size() * width);
    for (std::size_t i = 0; i < slots.size(); ++i) std::memcpy(bytes.data() + i * width, &slots[i], width);
    return bytes;
}

inline std::vector<std::uint32_t> from_bytes(const std::vector<std::byte>& bytes, const DType& dtype) {
    const std::size_t width = slot_bytes(encoding_of(dtype));
    std::vector<std::uint32_t> slots(bytes.size() / width, 0);
    for (std::size_t i = 0; i < slots.size(); ++i) std::memcpy(&slots[i], bytes.data() + i * width, width);
    return slots;
}

inline Value value_of(std::uint32_t bits, const DType& dtype) {
    std::byte slot[4];
    std::memcpy(slot, &bits, 4);
    const Encoding encoding = encoding_of(dtype);
    return to_value(encoding, load_slot(encoding, slot));
}

/// The slots of a carrier that is neither released nor evicted.
inline std::vector<std::uint32_t> slots_of(const Carrier& c) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(c.size()) * slot_bytes(encoding_of(c.dtype())));
    c.read(0, c.size(), bytes);
    return from_bytes(bytes, c.dtype());
}

}  // namespace carrier::fuzz
