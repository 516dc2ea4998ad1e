// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/ownership.hpp"

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"

namespace carrier {

Ownership::Ownership(Ref<Carrier> carrier) : carrier_(std::move(carrier)) {
    Inner::set_owner(*carrier_, this);
}

Ownership::~Ownership() { abandon(); }

void Ownership::abandon() noexcept {
    if (!carrier_) return;
    Inner::set_owner(*carrier_, nullptr);
    carrier_ = nullptr;
    depth_ = 0;
}

void Ownership::enter() {
    if (!carrier_) throw StateError("the ownership token is spent; claim the carrier again");
    if (depth_ != 0 && thread_ != std::this_thread::get_id())
        throw StateError("another thread is inside the access scope of this ownership token");
    thread_ = std::this_thread::get_id();
    ++depth_;
}

void Ownership::leave() {
    if (!admits_this_thread())
        throw StateError("this thread is not inside the access scope of this ownership token");
    --depth_;
}

void Ownership::relinquish() {
    if (!carrier_) throw StateError("the ownership token is spent: its carrier was given back already");
    if (depth_ != 0)
        throw StateError(
            "the access scope of this ownership token is still open; leave it before relinquishing");
    abandon();
}

}  // namespace carrier
