// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carrier/carrier.hpp"
#include "carrier/layout.hpp"

namespace carrier {

/// One plane's placement: slots `offset + layout.index(i)` of a carrier.
struct Subtensor {
    Ref<Carrier> carrier;
    std::int64_t offset = 0;
    Layout layout;
};

/// A view of a carrier through a layout. It never copies; its version and mutability are the carrier's.
///
/// Several subtensors make the Tensor of a compound dtype; the functions that mean one carrier are then
/// NotImplementedErrors that say so.
class CARRIER_API Tensor {
  public:
    /// ValueError when the offset is negative or `offset + layout.cosize()` exceeds the carrier's size,
    /// StateError when the carrier is released. May stand over an evicted hierarchy.
    Tensor(Ref<Carrier> carrier, std::int64_t offset, Layout layout);
    /// The Tensor of a compound dtype: one subtensor a plane, in order, all of one exact carrier kind, and n
    /// - 1 adjacent layouts, each with the shape of the level it leaves and indices inside the next level's
    /// size.
    static Tensor from_subtensors(const DType& dtype, std::vector<Subtensor> subtensors,
                                  std::vector<Layout> adjacent = {});

    /// What was saved, as it was: of one subtensor, or of a compound dtype (null for one). The same checks,
    /// except that a part may stand on a released carrier, as a Tensor does whose carrier was released later.
    static Tensor restored(const DType* compound, std::vector<Subtensor> subtensors,
                           std::vector<Layout> adjacent);

    bool is_single() const noexcept { return compound_ == nullptr; }
    const std::vector<Subtensor>& subtensors() const noexcept { return subtensors_; }
    const std::vector<Layout>& adjacent() const noexcept { return adjacent_; }

    const Ref<Carrier>& carrier() const { return single().carrier; }
    std::int64_t offset() const { return single().offset; }
    const Layout& layout() const { return single().layout; }
    /// Logical size (of the first level, for several subtensors).
    std::int64_t size() const;
    const DType& dtype() const;
    std::uint64_t version() const { return single().carrier->version(); }
    bool is_mutable() const { return single().carrier->is_mutable(); }

    /// One value by logical index (first mode fastest). ValueError outside the domain, then the carrier's
    /// errors.
    Value get_value(std::int64_t logical) const;
    void set_value(std::int64_t logical, const Value& value);

    /// Copies values [start, stop) in logical order out, as slots of the carrier's encoding. StateError,
    /// IndexError.
    void read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const;
    /// Writes normalized slots in logical order. All or nothing, one step of the version; none for no slots.
    void write(std::int64_t start, std::span<const std::byte> slots);
    /// Writes one value to logical indices [start, stop).
    void fill(const Value& value, std::int64_t start, std::int64_t stop);
    /// IndexError unless 0 <= start <= stop <= size().
    void require_range(std::int64_t start, std::int64_t stop) const;

    /// The only subtensor; NotImplementedError when there are several.
    const Subtensor& single() const {
        if (compound_ != nullptr || subtensors_.empty()) refuse_single();
        return subtensors_.front();
    }
    /// For garbage collectors: lets the carriers go.
    void clear() noexcept { subtensors_.clear(); }

  private:
    Tensor(const DType* compound, std::vector<Subtensor> subtensors, std::vector<Layout> adjacent);
    [[noreturn]] void refuse_single() const;

    std::vector<Subtensor> subtensors_;
    std::vector<Layout> adjacent_;
    const DType* compound_ = nullptr;
};

}  // namespace carrier
