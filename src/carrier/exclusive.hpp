// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <initializer_list>
#include <vector>

#include "carrier/carrier.hpp"

namespace carrier {

/// Marks carriers, and the tiers of hierarchies among them, busy for a scope: whoever meets them waits.
///
/// For bulk work that gives the host's lock up, and for transitions. Entering waits for its turn, open to
/// signals; carriers are taken from the top of their hierarchies down, and by address on one level, so that
/// two scopes never wait for each other. The tiers are looked up when their hierarchy is held, not before.
/// StateError when the calling thread itself is at work on one of them (a hook that calls back), and in a
/// forked child whose parent was at work at the fork. A carrier of hooks admits its own thread again.
///
/// Lock order: one leaf mutex, held for a few instructions, never while waiting for the host's lock.
class Exclusive {
  public:
    explicit Exclusive(std::initializer_list<const Carrier*> carriers);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

    /// Returns when nothing runs on the carrier; the errors are those above.
    static void wait_for(const Carrier& carrier) {
        if (carrier.hot().has(Hot::kBusy)) wait_while_busy(carrier);
    }

  private:
    static void wait_while_busy(const Carrier& carrier);
    static void take(Carrier& carrier);
    static void leave(Carrier& carrier) noexcept;
    void enter(std::initializer_list<const Carrier*> carriers);
    void leave_all() noexcept;

    std::vector<Ref<Carrier>> held_;
};

}  // namespace carrier
