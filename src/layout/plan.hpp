// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "carrier/layout.hpp"
#include "layout/tuning.hpp"

namespace carrier {

/// What happens to an element on its way. A truth byte is true when it is not 0.
enum class Conversion : std::uint8_t {
    none,              // same bytes
    int32_to_float32,  // rounded to nearest, ties to even
    bool_to_float32,   // 1 byte to 4: 1.0 or 0.0
    bool_to_bool,      // 1 byte to 1: 1 or 0
};

/// Bytes of a source element whose destination has `width` of them.
constexpr std::size_t source_width(std::size_t width, Conversion conversion) noexcept {
    return conversion == Conversion::bool_to_float32 ? 1 : width;
}

/// A loop over `extent` elements, with its step on both sides in elements.
struct Axis {
    std::int64_t extent;
    std::int64_t from;
    std::int64_t to;
};

/// Copies elements from slots of one layout to slots of another: element i, for every logical index i, goes
/// from source slot `source.index(i)` to destination slot `destination.index(i)`. Where the destination has
/// two of them in one slot, the greater index wins. Nothing else is touched, holes between slots included.
///
/// Made in O(rank): leaves are flattened, those of one index dropped, adjacent ones merged, and sorted by
/// what suits memory when no order can be seen in the result. No heap memory up to kFew leaves. A plan is a
/// value, bound to no address; running it neither allocates nor fails. Slots are `width` bytes, 1 or 4, and
/// need no alignment.
///
/// The caller proves the slots in range (`Layout::cosize`), and keeps the two sides apart: a source that
/// overlaps the destination must be copied (gathered) first.
class CopyPlan {
  public:
    /// More axes than this cannot have an extent of at least 2 each: their indices would not fit 63 bits.
    static constexpr std::size_t kMaxAxes = 62;

    /// The layouts have equal shapes. `width` is that of a destination slot.
    CopyPlan(const Layout& source, const Layout& destination, std::size_t width,
             Conversion conversion = Conversion::none) noexcept
        : CopyPlan(source.shape(), &source, &destination, width, conversion) {}
    /// From slots into a dense array in logical order.
    static CopyPlan gather(const Layout& source, std::size_t width,
                           Conversion conversion = Conversion::none) {
        return {source.shape(), &source, nullptr, width, conversion};
    }
    /// From a dense array in logical order into slots.
    static CopyPlan spread(const Layout& destination, std::size_t width,
                           Conversion conversion = Conversion::none) noexcept {
        return {destination.shape(), nullptr, &destination, width, conversion};
    }

    /// One element, at the source's address, into every slot.
    static CopyPlan repeat(const Layout& destination, std::size_t width) noexcept {
        return {destination.shape(), nullptr, &destination, width, Conversion::none, 0};
    }

    void run(const std::byte* source, std::byte* destination,
             const Tuning& tuning = Tuning::best()) const noexcept;

    /// Whether it is a single run of unchanged elements, from the first one on.
    bool is_run() const noexcept;
    /// Bytes of the elements that are written, each counted once.
    std::size_t bytes() const noexcept;
    /// Into how many parts, `most` at most, the work can be cut for `run_part`; 1 where a slot may be written
    /// twice.
    std::size_t parts(std::size_t most) const noexcept;
    /// Part `i` of `count`: together, in any order or at once, they do what `run` does.
    void run_part(std::size_t i, std::size_t count, const std::byte* source, std::byte* destination,
                  const Tuning& tuning = Tuning::best()) const noexcept;

    /// The loops left, innermost first; none for a single element.
    std::size_t axes() const noexcept { return count_; }
    const Axis& axis(std::size_t i) const noexcept { return axes_[i]; }
    /// Whether axis 0 runs along the destination and axis 1 along the source, to be copied in tiles.
    bool is_tiled() const noexcept { return tiled_; }

  private:
    /// A side without a layout is a dense array, whose first step is `dense`: 0 for a single element.
    CopyPlan(const Shape& shape, const Layout* source, const Layout* destination, std::size_t width,
             Conversion conversion, std::int64_t dense = 1) noexcept;

    /// The axis that parts are cut from.
    std::size_t widest() const noexcept;

    std::size_t count_ = 0;
    std::int64_t from_ = 0;
    std::uint8_t width_;
    Conversion conversion_;
    bool tiled_ = false;
    bool once_ = false;                // no slot is written twice
    std::array<Axis, kMaxAxes> axes_;  // set up to count_
};

}  // namespace carrier
