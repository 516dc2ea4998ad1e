// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>

#include "carrier/carrier.hpp"
#include "carrier/host_block.hpp"

namespace carrier {

/// Memory of an Apple GPU, shared with the host. Stores Float32, Int32 and Bool.
///
/// Construction checks size, then dtype, then the runtime: a StateError says what is missing and what to use
/// instead. Nothing of Metal is loaded before the first construction.
class CARRIER_API Metal final : public Carrier {
  public:
    explicit Metal(std::int64_t size, const DType& dtype = DType::Float32(), bool writable = true,
                   bool empty = false);

    /// Copies staged slots into fresh device memory.
    Metal(const Ref<HostBlock>& staged, std::int64_t size, const DType& dtype, bool writable);

    std::string kind() const override { return "Metal"; }

    /// Whether a Metal could be constructed now; the reason why not goes to `why` when given.
    static bool available(std::string* why = nullptr);
    /// The dtypes that a Metal stores.
    static std::span<const DType* const> accepted() noexcept;

  protected:
    bool do_supports(const DType& dtype) const override;
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                  bool empty) const override;
    std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                      const DType& dtype) const override;
    void do_release() override;
    Ref<Block> do_block() const override { return block_; }

  private:
    Ref<Block> block_;
};

}  // namespace carrier
