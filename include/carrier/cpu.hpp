// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <functional>

#include "carrier/carrier.hpp"
#include "carrier/host_block.hpp"

namespace carrier {

/// Host memory, owned or wrapped. Stores Float32, Int32 and Bool.
class CARRIER_API CPU final : public Carrier {
  public:
    /// Owned memory of `size` slots, zeroed unless `empty` (zeroing is lazy for large sizes).
    /// ValueError (negative size, dtype), MemoryError.
    explicit CPU(std::int64_t size, const DType& dtype = DType::Float32(), bool writable = true,
                 bool empty = false);
    /// Wraps memory without owning, checking or changing it. The address may be unaligned. A positive
    /// address, else ValueError. `keep` lives as long as the carrier or a view of it needs the memory.
    CPU(std::int64_t size, std::uintptr_t pointer, const DType& dtype, bool writable = true,
        std::function<void()> on_last_use = {});
    /// Adopts a block that already holds `size` slots.
    CPU(Ref<HostBlock> block, std::int64_t size, const DType& dtype, bool writable);

    /// Opens one to be filled with values; `expected` is a hint (-1: unknown). ValueError (dtype).
    static std::unique_ptr<Intake> open(const DType& dtype, bool writable = true, std::int64_t expected = -1);

    std::string kind() const override { return "CPU"; }
    /// The address of slot 0; positive even for no slots. StateError after release.
    std::uintptr_t pointer() const;

    /// The dtypes that a CPU stores.
    static std::span<const DType* const> accepted() noexcept;

  protected:
    bool do_supports(const DType& dtype) const override;
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
