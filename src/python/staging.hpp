// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "carrier/host_block.hpp"
#include "carrier/intake.hpp"

namespace carrier::python {

/// Normalized values in host memory, on their way to slots that exist already. A hole is no value there.
///
/// The values may be of unknown number, even without end: as soon as there are more than `limit`, `too_many`
/// is called with the number so far; it throws, or returns a new limit.
class Staging final : public Intake {
  public:
    using TooMany = std::function<std::size_t(std::size_t count)>;

    /// `expected` values are made room for at once. MemoryError.
    Staging(Encoding encoding, std::size_t expected, std::size_t limit, TooMany too_many);

    std::span<std::byte> room(std::size_t slots) override;
    void filled(std::size_t slots) override;
    /// Staged values are never a carrier.
    [[noreturn]] Ref<Carrier> finish() override;

    /// What is there so far; valid until the next call of `room`.
    std::span<const std::byte> slots() const noexcept { return {block_->data(), used_}; }

  private:
    Ref<HostBlock> block_;
    std::size_t used_ = 0;
    std::size_t limit_;
    TooMany too_many_;
};

}  // namespace carrier::python
