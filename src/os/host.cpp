// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/host.hpp"

namespace carrier {

namespace {
// Constant from the start and never destroyed: blocks may be dropped while the process ends.
constinit Host table;
}  // namespace

Host& host() noexcept { return table; }

}  // namespace carrier
