// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstddef>

#include "carrier/carrier.hpp"
#include "carrier/host_block.hpp"

namespace carrier {

/// Writable access to all slots of a carrier as memory, for a while (docs/contract.md, Exchange).
///
/// On a carrier in host memory the bytes are the carrier's own; on any other they are a copy that `finish`
/// writes back. The version advances when the edit begins and when it ends, since nothing tells of the writes
/// in between. While it runs, release, transitions, claims and a second edit are StateErrors.
class CARRIER_API Edit : public RefCounted {
  public:
    /// Begins. StateError when the carrier is not publicly mutable or edited already; TypeError when its
    /// slots have no bytes.
    explicit Edit(Ref<Carrier> carrier);
    /// An edit that was not finished is dropped: a staged copy is not written back.
    ~Edit() override;

    /// The memory of the slots; it outlives the edit as long as it is held.
    const Ref<Block>& block() const noexcept { return block_; }
    /// True when `block` is a copy.
    bool is_staged() const noexcept { return staged_; }
    /// Null once ended.
    const Ref<Carrier>& carrier() const noexcept { return carrier_; }

    /// Ends. `keep` writes a staged copy back, all or nothing; an error there ends the edit too.
    void finish(bool keep);

  private:
    void end(bool counts) noexcept;

    Ref<Carrier> carrier_;
    Ref<Block> block_;
    bool staged_ = false;
};

}  // namespace carrier
