// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <span>

#include "carrier/ref.hpp"
#include "carrier/value.hpp"

namespace carrier {

class Carrier;

/// Fresh storage while it is being filled, seen by nobody until `finish`. This is how values of unknown
/// number enter a carrier in bulk: ask for room, write normalized slots into it, say how many, repeat,
/// finish. Dropping an unfinished intake leaves nothing behind.
///
/// A chunk may be written without the host's lock; the calls themselves are made by one thread.
class CARRIER_API Intake {
  public:
    virtual ~Intake() = default;
    Intake(const Intake&) = delete;
    Intake& operator=(const Intake&) = delete;

    Encoding encoding() const noexcept { return encoding_; }
    /// False when a hole (no value) is a TypeError here, as on Generic; elsewhere a hole is the dtype's zero.
    bool takes_holes() const noexcept { return takes_holes_; }
    /// Writable room for at least one slot, and for `slots` when the medium can give it. Invalid after the
    /// next call. MemoryError, OsError (full disk).
    virtual std::span<std::byte> room(std::size_t slots) = 0;
    /// The first `slots` of the last room are filled.
    virtual void filled(std::size_t slots) = 0;
    /// Takes normalized slots from where they lie, in place of room for a copy of them; false, with nothing
    /// done, where the medium gains nothing by that. OsError (full disk).
    virtual bool append(std::span<const std::byte>) { return false; }
    /// Hands the carrier over; the intake is spent.
    virtual Ref<Carrier> finish() = 0;

    /// Fills one slot from a value (normalized here; a hole as the rule of the kind says).
    void put(const Value& value);

  protected:
    Intake(Encoding encoding, bool takes_holes) noexcept : encoding_(encoding), takes_holes_(takes_holes) {}

  private:
    Encoding encoding_;
    bool takes_holes_;
};

}  // namespace carrier
