// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstddef>
#include <span>

#include "carrier/carrier.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/inner.hpp"
#include "carrier/undo.hpp"

/// Bulk access to carriers without a block, whose every slot passes through a function of its own, and so
/// perhaps through user code. Others wait meanwhile. `check` throws when the carrier may not be used (any
/// more); `next_slot()` gives one slot after the other.
namespace carrier {

template <class Check, class NextSlot>
void read_slots(const Carrier& c, const Check& check, NextSlot next_slot, std::span<std::byte> into) {
    const Encoding encoding = c.hot().encoding;
    const Exclusive exclusive({&c});
    check();
    for (std::size_t at = 0; at < into.size(); at += slot_bytes(encoding)) {
        Inner::check_live(c);
        store_slot(encoding, &into[at], normalize(encoding, Inner::get(c, next_slot())));
    }
}

/// All or nothing.
template <class Check, class NextSlot>
void write_slots(Carrier& c, const Check& check, NextSlot next_slot, std::span<const std::byte> slots) {
    const Encoding encoding = c.hot().encoding;
    const std::size_t width = slot_bytes(encoding);
    const Exclusive exclusive({&c});
    check();
    SlotUndo undo(c, slots.size() / width);
    for (std::size_t at = 0; at < slots.size(); at += width)
        undo.set(next_slot(), to_value(encoding, load_slot(encoding, &slots[at])));
    undo.forget();
}

/// All or nothing.
template <class Check, class NextSlot>
void fill_slots(Carrier& c, const Check& check, NextSlot next_slot, std::int64_t count, Scalar value) {
    const Value filling = to_value(c.hot().encoding, value);
    const Exclusive exclusive({&c});
    check();
    SlotUndo undo(c, static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) undo.set(next_slot(), filling);
    undo.forget();
}

}  // namespace carrier
