// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>

#include "carrier/carrier.hpp"
#include "carrier/host_block.hpp"

namespace carrier {

/// Normalized values in memory of its own: no address, no holes. Stores Float32, Int32 and Bool; its
/// structural answer also names Any and Floating, as the contract's table does, though every factory refuses
/// categories.
class CARRIER_API Generic final : public Carrier {
  public:
    /// Storage of `size` zeros. Use `open` or `new_like` to fill one with values.
    Generic(std::int64_t size, const DType& dtype, bool writable = true);
    Generic(Ref<HostBlock> block, std::int64_t size, const DType& dtype, bool writable);
    /// Opens a Generic to be filled with values, none of them a hole.
    static std::unique_ptr<Intake> open(const DType& dtype, bool writable = true, std::int64_t expected = -1);

    std::string kind() const override { return "Generic"; }

    /// The dtypes that constructors and factories accept.
    static std::span<const DType* const> accepted() noexcept;

  protected:
    bool do_supports(const DType& dtype) const override;
    const DType& do_validate(const DType& dtype) const override;
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                  bool empty) const override;
    std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                      const DType& dtype) const override;
    void do_release() override;
    Ref<Block> do_block() const override { return Ref<Block>(block_); }

  private:
    Ref<HostBlock> block_;
};

}  // namespace carrier
