// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/plan_run.hpp"

#include <algorithm>
#include <new>

#include "storage/copy.hpp"
#include "storage/crew.hpp"

namespace carrier {

namespace {

/// Two of these are worth a second thread; more, up to kParts, leave work for a thread that begins late.
constexpr std::size_t kPart = std::size_t{4} << 20;
constexpr std::size_t kParts = 8;

bool run_shared(const CopyPlan& plan, const std::byte* source, std::byte* destination) {
    const std::size_t bytes = plan.bytes();
    if (bytes < 2 * kPart) return false;
    Pulse undisturbed(false);
    if (plan.is_run()) {
        storage::copy_memory(destination, source, bytes, undisturbed);
        return true;
    }
    const std::size_t parts = plan.parts(std::min(bytes / kPart, kParts));
    if (parts <= 1) return false;
    storage::run_jobs(parts, storage::copying_threads(), undisturbed,
                      [&](std::size_t i) { plan.run_part(i, parts, source, destination); });
    return true;
}

}  // namespace

void run_plan(const CopyPlan& plan, const std::byte* source, std::byte* destination) noexcept {
    try {
        if (run_shared(plan, source, destination)) return;
    } catch (const std::bad_alloc&) {  // before anything was moved
    }
    plan.run(source, destination);
}

}  // namespace carrier
