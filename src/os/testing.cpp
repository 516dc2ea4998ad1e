// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/testing.hpp"

namespace carrier::os::testing {

constinit std::atomic<Hook*> hook{nullptr};

}  // namespace carrier::os::testing
