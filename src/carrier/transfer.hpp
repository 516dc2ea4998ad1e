// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstdint>

#include "carrier/carrier.hpp"

namespace carrier {

/// Copies slots [0, count) of `from` to the same slots of `to`, which has the same dtype. Bit patterns
/// survive wherever both sides are bytes. Blocks move in bulk with the host's lock given up; a carrier
/// without a block is read and written slot by slot through its own functions.
///
/// `fresh` says that nobody sees `to` yet: signals are then let in between chunks. No versions advance.
void transfer(const Carrier& from, Carrier& to, std::int64_t count, bool fresh);

}  // namespace carrier
