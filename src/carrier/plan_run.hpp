// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include "layout/plan.hpp"

namespace carrier {

/// Runs a plan on host memory. Many bytes are moved by two threads, a long run of them past the caches; the
/// result is the plan's own. Like the plan, it does not fail once begun: without memory or threads for that
/// it does all by itself.
void run_plan(const CopyPlan& plan, const std::byte* source, std::byte* destination) noexcept;

}  // namespace carrier
