// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "carrier/value.hpp"

namespace carrier {

/// What an element access needs to know, in one place: a binding's fast path reads it directly.
struct Hot {
    /// State bits. A read may use `data` when none of `kNoFastRead` is set, a write when none at all is.
    enum Bits : std::uint8_t {
        kReleased = 1,
        kImmutable = 2,
        kOwned = 4,
        kEvicted = 8,
        kIndirect = 16,  ///< no host address: ask the kind
        kBusy = 32,      ///< bulk work or a transition runs: wait for it
        kEdited = 64,    ///< an edit is open
    };
    static constexpr std::uint8_t kNoFastRead = kReleased | kEvicted | kIndirect | kBusy;

    std::byte* data = nullptr;
    std::int64_t size = 0;
    std::uint64_t version = 0;
    /// Written under the host's lock; atomic since bulk work of other threads looks at it without.
    std::atomic<std::uint8_t> state{kIndirect};
    Encoding encoding = Encoding::opaque;

    bool has(std::uint8_t bits) const noexcept { return (state.load(std::memory_order_acquire) & bits) != 0; }
    void set(std::uint8_t bits) noexcept { state.fetch_or(bits, std::memory_order_acq_rel); }
    void unset(std::uint8_t bits) noexcept {
        state.fetch_and(static_cast<std::uint8_t>(~bits), std::memory_order_acq_rel);
    }
};

}  // namespace carrier
