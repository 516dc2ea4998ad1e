// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>

#include "carrier/carrier.hpp"
#include "carrier/host_block.hpp"

namespace carrier {

namespace metal {
class MetalBlock;
}

/// Memory of an Apple GPU, shared with the host. Stores Float32, Int32 and Bool.
///
/// Construction checks size, then dtype, then the runtime: a StateError says what is missing (the module, a
/// device in this session, a GPU with unified memory) and what to use instead. MemoryError for more bytes
/// than one buffer of the device holds. Nothing of Metal is loaded before the first construction.
///
/// Host and GPU use the same bytes, so reads and writes are those of host memory. A scatter whose values are
/// on Metal too, or that has many of them, is the GPU's work and done when the call returns; slots beyond
/// 2^32 are the host's. When the kernel is refused or the GPU stops, the values are as before: StateError.
///
/// Metal does not survive a fork: in the child, making, reading, writing or moving is a StateError that names
/// it.
class CARRIER_API Metal final : public Carrier {
  public:
    explicit Metal(std::int64_t size, const DType& dtype = DType::Float32(), bool writable = true,
                   bool empty = false);

    ~Metal() override;

    /// Copies staged slots into fresh device memory.
    Metal(const Ref<HostBlock>& staged, std::int64_t size, const DType& dtype, bool writable);

    /// Opens one to be filled with values; `expected` is a hint (-1: unknown). ValueError (dtype), StateError
    /// (no Metal).
    static std::unique_ptr<Intake> open(const DType& dtype, bool writable = true, std::int64_t expected = -1);

    std::string kind() const override { return "Metal"; }

    /// Whether a Metal could be constructed now; the reason why not goes to `why` when given.
    static bool available(std::string* why = nullptr);
    /// The dtypes that a Metal stores.
    static std::span<const DType* const> accepted() noexcept;

  protected:
    bool do_supports(const DType& dtype) const override;
    Value do_get(std::int64_t index) const override;
    void do_set(std::int64_t index, const Value& value) override;
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                  bool empty) const override;
    std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                      const DType& dtype) const override;
    void do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) override;
    void do_release() override;
    Ref<Block> do_block() const override;

  private:
    bool uses_kernel(const Tensor& source, std::int64_t base, const Layout& mapping) const;
    void enlist();
    static bool watched() noexcept;
    static const bool ready_;
    /// In a forked child: takes the address of every Metal off the fast paths, so that each access asks the
    /// kind.
    static void close_inherited() noexcept;

    Ref<metal::MetalBlock> block_;
    // The list of all that live.
    static Metal* first_;
    Metal* next_ = nullptr;
    Metal* previous_ = nullptr;
};

}  // namespace carrier
