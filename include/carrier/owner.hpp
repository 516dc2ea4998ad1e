// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstdint>

#include "carrier/api.hpp"

namespace carrier {

class Carrier;

/// Who owns a carrier exclusively: a token of `claim`, or the hierarchy whose tier it is.
class CARRIER_API Owner {
  public:
    /// True while the calling thread is inside the owner's access scope.
    virtual bool admits_this_thread() const noexcept = 0;
    /// Writes that reached the carrier's values through the owner since the claim.
    virtual std::uint64_t writes() const noexcept { return 0; }
    /// The hierarchy whose tier it is; null for a token.
    virtual const Carrier* hierarchy() const noexcept { return nullptr; }

  protected:
    ~Owner() = default;
};

}  // namespace carrier
