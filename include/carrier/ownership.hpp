// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <thread>

#include "carrier/carrier.hpp"

namespace carrier {

/// The token of `Carrier::claim()`: exclusive ownership of one carrier (docs/contract.md, Ownership).
///
/// While it stands, others may read; writes, scatter, release and transitions are for the access scope alone.
/// Ends with `relinquish`, or with the token itself.
class CARRIER_API Ownership : public RefCounted, public Owner {
  public:
    explicit Ownership(Ref<Carrier> carrier);
    ~Ownership() override;

    /// Null once spent.
    const Ref<Carrier>& carrier() const noexcept { return carrier_; }
    /// Enters the access scope: bound to this thread, re-entrant. StateError when spent, or when another
    /// thread is inside.
    void enter();
    /// Leaves it. StateError when this thread is not inside.
    void leave();
    /// Gives the carrier back. StateError when spent, or while a scope is open.
    void relinquish();

    bool admits_this_thread() const noexcept override {
        return depth_ != 0 && thread_ == std::this_thread::get_id();
    }

    /// `enter` and `leave` for a C++ block.
    class Access {
      public:
        explicit Access(Ownership& token) : token_(token) { token.enter(); }
        ~Access() { token_.leave(); }
        Access(const Access&) = delete;
        Access& operator=(const Access&) = delete;
        Carrier& operator*() const noexcept { return *token_.carrier(); }
        Carrier* operator->() const noexcept { return token_.carrier().get(); }

      private:
        Ownership& token_;
    };
    Access access() { return Access(*this); }

    /// For garbage collectors: gives everything up without an error.
    void abandon() noexcept;

  private:
    Ref<Carrier> carrier_;
    std::thread::id thread_{};
    std::uint32_t depth_ = 0;
};

}  // namespace carrier
