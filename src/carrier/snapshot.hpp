// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "carrier/carrier.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/intake.hpp"

namespace carrier {

/// The values of a carrier at one moment, wherever they are: an evicted hierarchy's are read from its
/// secondary, and it stays evicted. For pickles, copies and files.
///
/// The carrier and its tiers are busy for the life of a snapshot: other threads wait, so all reads see the
/// same values. Whoever holds one does nothing else with the carrier.
class Snapshot {
  public:
    /// Waits for work that runs. StateError when released, TypeError when the slots have no bytes.
    explicit Snapshot(const Carrier& carrier);

    std::int64_t size() const noexcept { return size_; }
    Encoding encoding() const noexcept { return encoding_; }
    /// The memory that holds the slots from its first byte on, in which a Bool may be any byte; null when
    /// they are not in host memory. It outlives the snapshot, and then shows later writes.
    Ref<Block> memory() const;

    /// Copies slots [start, stop), which lie inside, out; Bool normalized to 0 and 1. Bulk work goes without
    /// the host's lock. OsError, and what hooks throw.
    void read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const;
    /// All of them into an open intake, in chunks between which signals are let in.
    void pour(Intake& intake) const;

  private:
    Exclusive exclusive_;
    Encoding encoding_ = Encoding::opaque;
    std::int64_t size_ = 0;
    Ref<Carrier> acting_;  ///< the tier that holds the values, or the carrier itself
    Ref<Block> block_;
};

/// An independent carrier of the same kind, dtype and intrinsic mutability with the same values: unowned, of
/// version 0; a hierarchy's is promoted and has tiers of the same kinds; a released one's is released. The
/// errors of reading and of `open_intake`.
Ref<Carrier> twin_of(const Carrier& carrier);

}  // namespace carrier
